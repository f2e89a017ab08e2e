//! Rich Text Format: a stream of groups, control words and bytes (version 1.9.1 of Microsoft's specification).
//!
//! Kept: paragraphs, headings (by their outline levels), table rows, lists, footnotes in brackets, the symbols of fonts that have
//! some in the places of letters ([`crate::symbol`]). Left out: pictures, text that is deleted, struck through or hidden, page
//! headers and footers, comments.

use std::collections::HashMap;
use std::mem;

use encoding_rs::{self as encodings, Encoding};

use crate::code_page::encoding_of_page;
use crate::limit::{COLUMNS, NESTING, RTF_WORD_BYTES, TEXT_BYTES};
use crate::merged_cells::Rows;
use crate::prose::{Gap, Prose, Script};
use crate::rtf_tokens::{Token, tokens};
use crate::source::first_heading;
use crate::{Cause, Kind, Limit, Source, symbol};

/// A `.rtf` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let (title, text) = document(bytes)?;
    let title = title.or_else(|| first_heading(&text));
    Source::whole(path, Kind::Rtf, title, text)
}

/// The title and the text of a document.
///
/// # Errors
/// [`Cause::Damaged`], [`Cause::LimitExceeded`].
pub(crate) fn document(bytes: &[u8]) -> Result<(Option<String>, String), Cause> {
    let bytes = bytes.trim_ascii_start();
    if !bytes.starts_with(b"{\\rtf") {
        return Err(damaged("it does not start with {\\rtf"));
    }
    let mut reader = Reader { groups: vec![Group::default()], default_font: -1, ..Reader::default() };
    for token in tokens(bytes) {
        reader.token(token)?;
        if reader.groups.len() == 1 {
            break;
        }
    }
    if reader.groups.len() > 1 {
        return Err(damaged("it ends inside a group; it may have been cut short"));
    }
    reader.end_row();
    let title = Some(reader.title.trim().to_owned()).filter(|title| !title.is_empty());
    Ok((title, reader.prose.finish()?))
}

fn damaged(detail: impl Into<String>) -> Cause {
    Cause::damaged(Kind::Rtf, detail)
}

/// Groups whose text is not part of the document.
const LEFT_OUT: [&str; 16] = [
    "colortbl",
    "stylesheet",
    "info",
    "pict",
    "objdata",
    "header",
    "headerl",
    "headerr",
    "headerf",
    "footer",
    "footerl",
    "footerr",
    "footerf",
    "sp",
    "tc",
    "xe",
];

/// What is longer is no mark of an item.
const MARK_BYTES: usize = 32;

/// Where the text of a group goes.
#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    Text,
    Title,
    Fonts,
    /// How a field is computed: `SYMBOL 97 \\f "Symbol"`.
    Instruction,
    /// The mark of an item of a list.
    Mark,
    Nowhere,
}

/// The state that ends with a group.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is set independently")]
struct Group {
    place: Place,
    is_hidden: bool,
    is_struck: bool,
    is_note: bool,
    /// The level of the paragraph as a heading, from 1; 0 for running text.
    heading: usize,
    /// Whether the group is a field whose symbol was written; its result is another form of it.
    is_written: bool,
    script: Script,
    /// How many characters stand for a Unicode character in readers that know none.
    substitutes: usize,
    font: i32,
}

impl Default for Group {
    fn default() -> Self {
        Group {
            place: Place::Text,
            is_hidden: false,
            is_struck: false,
            is_note: false,
            heading: 0,
            is_written: false,
            script: Script::Line,
            substitutes: 1,
            font: -1,
        }
    }
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is set independently")]
struct Reader {
    groups: Vec<Group>,
    /// Whether `\*` was just read: a group that may be left out by readers that do not know its word.
    is_optional: bool,
    /// How many characters are still to be left out after a Unicode character.
    substitutes_left: usize,
    /// The first half of a character beyond 16 bits.
    surrogate: Option<u16>,
    /// Bytes that were not decoded yet.
    bytes: Vec<u8>,
    /// The length of the text that was decoded.
    decoded_bytes: usize,
    page: Option<i32>,
    default_font: i32,
    charsets: HashMap<i32, i32>,
    /// The names of fonts with symbols in the places of letters.
    symbolic: HashMap<i32, String>,
    instruction: String,
    mark: String,
    /// Whether the paragraph has words.
    in_paragraph: bool,
    in_row: bool,
    in_cell: bool,
    /// How the cells of a row are merged with others, as far as it is defined, and the next one.
    merged: Vec<Rows>,
    next_merged: Rows,
    title: String,
    prose: Prose,
}

impl Reader {
    fn token(&mut self, token: Token<'_>) -> Result<(), Cause> {
        if let Token::Byte(byte) = token {
            if self.substitutes_left > 0 {
                self.substitutes_left -= 1;
            } else if self.group().place != Place::Nowhere {
                self.bytes.push(byte);
                return self.keep_short(byte);
            }
            return Ok(());
        }
        self.decode()?;
        match token {
            Token::Byte(_) => {}
            Token::Open => {
                self.substitutes_left = 0;
                let group = self.group();
                self.groups.push(Group { is_note: false, ..group });
                if self.groups.len() > NESTING {
                    return Err(Limit::Nesting(NESTING).into());
                }
            }
            Token::Close => {
                self.substitutes_left = 0;
                let closed = self.groups.pop().unwrap_or_default();
                if closed.is_note {
                    self.prose.end_bracket();
                }
                if self.groups.is_empty() {
                    return Err(damaged("it closes a group that is not open"));
                }
                if closed.place != self.group().place {
                    match closed.place {
                        Place::Instruction => self.end_instruction(),
                        Place::Mark => self.end_mark(),
                        _ => {}
                    }
                }
            }
            Token::Optional => self.is_optional = true,
            Token::Word(name, number) => {
                self.substitutes_left = 0;
                let is_optional = mem::take(&mut self.is_optional);
                // LibreOffice marks its footnotes as optional.
                if is_optional && !["shpinst", "footnote"].contains(&name) || LEFT_OUT.contains(&name) {
                    self.current().place = Place::Nowhere;
                }
                self.word(name, number)?;
            }
            Token::Cut => return Err(damaged("it ends inside a control word; it may have been cut short")),
        }
        Ok(())
    }

    fn group(&self) -> Group {
        self.groups.last().copied().unwrap_or_default()
    }

    fn current(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn word(&mut self, name: &str, number: Option<i32>) -> Result<(), Cause> {
        let is_on = number != Some(0);
        match name {
            "uc" => self.current().substitutes = number.and_then(|n| usize::try_from(n).ok()).unwrap_or(1),
            "v" | "deleted" => self.current().is_hidden = is_on,
            "strike" | "striked" => self.current().is_struck = is_on,
            "plain" => {
                let font = self.default_font;
                let group = self.current();
                (group.is_hidden, group.is_struck, group.script, group.font) = (false, false, Script::Line, font);
            }
            "super" | "up" => self.current().script = if is_on { Script::Super } else { Script::Line },
            "sub" | "dn" => self.current().script = if is_on { Script::Sub } else { Script::Line },
            "nosupersub" => self.current().script = Script::Line,
            "pard" => self.current().heading = 0,
            // Level 9 is that of running text.
            "outlinelevel" => {
                let level = number.and_then(|level| usize::try_from(level).ok()).filter(|level| *level < 9);
                self.current().heading = level.map_or(0, |level| level + 1);
            }
            "ansicpg" => self.page = number,
            "mac" => self.page = self.page.or(Some(10_000)),
            "pc" => self.page = self.page.or(Some(437)),
            "pca" => self.page = self.page.or(Some(850)),
            "deff" => self.default_font = number.unwrap_or(-1),
            "fonttbl" => self.current().place = Place::Fonts,
            "fldinst" => {
                self.current().place = Place::Instruction;
                self.instruction.clear();
            }
            "fldrslt" if self.group().is_written => self.current().place = Place::Nowhere,
            "title" if self.group().place == Place::Nowhere => self.current().place = Place::Title,
            "f" => self.current().font = number.unwrap_or(-1),
            "fcharset" if self.group().place == Place::Fonts => {
                let font = self.group().font;
                self.charsets.insert(font, number.unwrap_or(0));
            }
            "u" => return self.unicode(number.unwrap_or(0)),
            _ => {}
        }
        if self.group().place == Place::Text && !self.group().is_hidden {
            self.visible(name);
        }
        Ok(())
    }

    /// A control word that is text or white space.
    fn visible(&mut self, name: &str) {
        match name {
            "par" | "sect" | "page" | "column" if self.group().is_note => self.prose.gap(Gap::Space),
            "par" | "sect" | "page" | "column" => {
                self.in_paragraph = false;
                self.prose.lead("");
                if self.in_row {
                    self.prose.gap(Gap::Line);
                } else {
                    self.prose.close_table();
                    self.prose.gap(Gap::Paragraph);
                }
            }
            "line" | "nestrow" => self.prose.gap(Gap::Line),
            "tab" | "nestcell" | "emspace" | "enspace" | "~" => self.write(" "),
            "listtext" | "pntext" => {
                self.mark.clear();
                self.current().place = Place::Mark;
            }
            "footnote" if self.group().is_struck => self.current().place = Place::Nowhere,
            "footnote" => {
                self.current().script = Script::Line;
                self.write(" [note: ");
                self.current().is_note = true;
            }
            "emdash" => self.write("—"),
            "endash" => self.write("–"),
            "bullet" => self.write("•"),
            "lquote" => self.write("‘"),
            "rquote" => self.write("’"),
            "ldblquote" => self.write("“"),
            "rdblquote" => self.write("”"),
            "_" => self.write("-"),
            // Word defines a row that is like the one above it only at its end.
            "trowd" => {
                self.open_row();
                self.merged.clear();
            }
            "intbl" => self.open_row(),
            "trhdr" => self.prose.mark_header(),
            "clmrg" => self.next_merged = Rows::Covered,
            "clvmgf" if self.next_merged == Rows::One => self.next_merged = Rows::Marked,
            "clvmrg" if self.next_merged == Rows::One => self.next_merged = Rows::Continued,
            "cellx" if self.merged.len() < COLUMNS => self.merged.push(mem::take(&mut self.next_merged)),
            "cell" if self.in_row => {
                self.open_cell();
                self.prose.close_cell();
                (self.in_cell, self.in_paragraph) = (false, false);
            }
            "row" => self.end_row(),
            _ => {}
        }
    }

    /// Writes the mark of an item before its words: a number or letter as it is, `1.`, `1.2` or `a)`, anything else as `-`.
    fn end_mark(&mut self) {
        let mark = self.mark.trim();
        let has_number = mark.contains(|c: char| c.is_ascii_digit());
        let has_letter = mark.ends_with(['.', ')']) && mark.contains(char::is_alphanumeric);
        let is_number = mark.len() <= MARK_BYTES && (has_number || has_letter);
        let mark = if is_number { format!("{mark} ") } else { "- ".to_owned() };
        self.prose.lead(&mark);
    }

    fn open_row(&mut self) {
        if !mem::replace(&mut self.in_row, true) {
            self.prose.open_row();
        }
    }

    fn open_cell(&mut self) {
        if self.in_row && !mem::replace(&mut self.in_cell, true) {
            self.prose.open_cell();
        }
    }

    fn end_row(&mut self) {
        if mem::take(&mut self.in_cell) {
            self.prose.close_cell();
        }
        if mem::take(&mut self.in_row) {
            self.prose.merge_cells(&self.merged);
            self.prose.close_row();
        }
    }

    fn unicode(&mut self, number: i32) -> Result<(), Cause> {
        // Numbers above 32,767 are written as negative ones.
        let unit = number.cast_unsigned() as u16;
        self.substitutes_left = self.group().substitutes;
        let pair = [self.surrogate.take().unwrap_or(unit), unit];
        let units = if pair[0] == unit { &pair[1..] } else { &pair[..] };
        match char::decode_utf16(units.iter().copied()).collect::<Result<String, _>>() {
            Ok(text) => match self.symbolic.get(&self.group().font) {
                Some(font) => {
                    let text = symbol::readable(font, &text);
                    self.write(&text);
                }
                None => self.write(&text),
            },
            Err(_) if units.len() == 1 && (0xD800..0xDC00).contains(&unit) => self.surrogate = Some(unit),
            Err(_) => return Err(damaged(format!("\\u{number} is no character"))),
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        match self.group() {
            Group { place, is_hidden, is_struck, .. } if is_hidden || is_struck && place == Place::Text => {
                self.prose.leave_out(text);
            }
            Group { place: Place::Text, script, heading, .. } => {
                if !text.trim().is_empty() {
                    self.open_cell();
                    if !mem::replace(&mut self.in_paragraph, true) && heading > 0 {
                        let number = self.prose.take_lead();
                        self.prose.lead(&format!("{} {number}", "#".repeat(heading.min(6))));
                    }
                }
                self.prose.run(script, text);
            }
            Group { place: Place::Title, .. } => self.title.push_str(text),
            Group { place: Place::Mark, .. } if self.mark.len() < MARK_BYTES => self.mark.push_str(text),
            _ => {}
        }
    }

    /// Decodes long runs of text in parts, each up to a space, which is part of no other character in any encoding.
    fn keep_short(&mut self, last: u8) -> Result<(), Cause> {
        const PART_BYTES: usize = 64 << 10;
        match self.bytes.len() {
            PART_BYTES.. if last == b' ' => self.decode(),
            length if length > RTF_WORD_BYTES => {
                Err(damaged(format!("it has a word of more than {} MiB; save it as text", RTF_WORD_BYTES >> 20)))
            }
            _ => Ok(()),
        }
    }

    /// Writes the bytes so far in the encoding of their font.
    fn decode(&mut self) -> Result<(), Cause> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let bytes = mem::take(&mut self.bytes);
        let group = self.group();
        if matches!(group.place, Place::Fonts | Place::Instruction) {
            self.describe(group, &String::from_utf8_lossy(&bytes));
            return Ok(());
        }
        if let Some(font) = self.symbolic.get(&group.font) {
            let text: String = bytes.iter().filter_map(|byte| symbol::character(font, (*byte).into())).collect();
            return self.write_decoded(&text);
        }
        let encoding = if bytes.is_ascii() { encodings::WINDOWS_1252 } else { self.encoding()? };
        let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes);
        let text = text.ok_or_else(|| damaged(format!("its text is not valid {}", encoding.name())))?;
        self.write_decoded(&text)
    }

    fn write_decoded(&mut self, text: &str) -> Result<(), Cause> {
        self.decoded_bytes += text.len();
        if self.decoded_bytes > TEXT_BYTES {
            return Err(Limit::TextBytes(TEXT_BYTES).into());
        }
        self.write(text);
        Ok(())
    }

    /// Takes the name of a font, or a part of the instruction of a field.
    fn describe(&mut self, group: Group, text: &str) {
        const INSTRUCTION_BYTES: usize = 256;
        const FONTS: usize = 1000;
        if group.place == Place::Fonts {
            let name = text.trim().trim_end_matches(';');
            if symbol::is_symbolic(name) && self.symbolic.len() < FONTS {
                self.symbolic.insert(group.font, name.to_owned());
            }
        } else if self.instruction.len() + text.len() <= INSTRUCTION_BYTES {
            self.instruction.push_str(text);
        }
    }

    /// Writes the symbol that a field inserts, which Word gives without a result.
    fn end_instruction(&mut self) {
        let instruction = mem::take(&mut self.instruction);
        if let Some(symbol) = symbol_of_field(&instruction) {
            self.write(symbol.encode_utf8(&mut [0; 4]));
            self.current().is_written = true;
        }
    }

    fn encoding(&self) -> Result<&'static Encoding, Cause> {
        let charset = self.charsets.get(&self.group().font).copied();
        if let Some(encoding) = charset.and_then(encoding_of_charset) {
            return Ok(encoding);
        }
        let Some(page) = self.page else { return Ok(encodings::WINDOWS_1252) };
        encoding_of_page(page)
            .ok_or_else(|| damaged(format!("its code page {page} is not supported; save it as .docx or .txt")))
    }
}

/// The symbol of a field `SYMBOL 97 \\f "Symbol"`.
fn symbol_of_field(instruction: &str) -> Option<char> {
    let arguments = instruction.trim_start().strip_prefix("SYMBOL ")?;
    let code = arguments.split_whitespace().next()?;
    let code = match code.strip_prefix("0x") {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
        None => code.parse().ok()?,
    };
    let (_, font) = arguments.split_once("\\f ")?;
    let font = match font.trim_start().strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => font.split_whitespace().next()?,
    };
    symbol::character(font, code)
}

/// The encoding of a font's character set, if it differs from the document's.
fn encoding_of_charset(charset: i32) -> Option<&'static Encoding> {
    encoding_of_page(match charset {
        77 => 10_000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    })
}
