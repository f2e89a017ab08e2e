//! Excel workbooks: one section a sheet, with its rows as lines ([`crate::rows`]) and numbers and texts as their formats show
//! them ([`crate::xlsx_format`]).
//!
//! Formulas give the values that were stored with them. Left out: hidden sheets, which a line names, what is
//! struck through, comments, charts, pictures.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::rc::Rc;

use crate::archive::Archive;
use crate::limit::{RECORDS, check_entries, check_text};
use crate::merged_rows::{Merged, MergedRows};
use crate::office::{self, Relations, is_on};
use crate::prose::is_exponent;
use crate::rows::Rows;
use crate::source::Part;
use crate::xlsx_format::Format;
use crate::xml::{self, ADVICE, Node, Tag};
use crate::{Cause, Kind, Limit, Source};

/// A `.xlsx` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = office::open(bytes, Kind::Xlsx)?;
    let workbook_name = office::main_part(&mut archive)?;
    let relations = Relations::of(&mut archive, &workbook_name)?;
    let mut sheets = Vec::new();
    let mut first_day = 25_569;
    let read = xml::each_tag(&archive.text(&workbook_name)?, Kind::Xlsx, |tag| {
        match tag.name() {
            b"sheet" => {
                let is_hidden = tag.attribute("state").is_some_and(|state| state == "hidden" || state == "veryHidden");
                sheets.push((tag.attribute("name").unwrap_or_default(), tag.relation(), is_hidden));
            }
            b"workbookPr" if tag.attribute("date1904").is_some_and(|set| set == "1" || set == "true") => {
                first_day = 24_107;
            }
            _ => {}
        }
        check_entries(sheets.len())?;
        Ok(true)
    });
    read.map_err(|cause| cause.in_part(&workbook_name))?;
    let book = Book {
        strings: Strings::read(&mut archive, relations.by_kind("/sharedStrings"))?,
        styles: styles(&mut archive, relations.by_kind("/styles"))?,
        first_day,
    };
    let (mut parts, mut length) = (Vec::new(), 0);
    for (name, id, is_hidden) in sheets {
        if is_hidden {
            parts.push(Part::hidden_sheet(name));
            continue;
        }
        let part = id.as_deref().and_then(|id| relations.by_id(id));
        let part = part.ok_or_else(|| Cause::damaged(Kind::Xlsx, format!("the sheet {name} is missing; {ADVICE}")))?;
        let rows = rows(&archive.text(part)?, &book).map_err(|cause| cause.in_part(part))?;
        // Sheets can share their strings and their parts.
        length += rows.len();
        check_text(length)?;
        let text = if rows.is_empty() { rows } else { format!("# {name}\n\n{rows}") };
        parts.push(Part { title: Some(name), text, ..Part::default() });
    }
    let title = office::title(&mut archive)?;
    Source::joined(path, Kind::Xlsx, title, parts)
}

/// What the cells of all sheets refer to.
struct Book {
    strings: Strings,
    /// The styles of cells.
    styles: Vec<Style>,
    /// The number of 1970-01-01.
    first_day: i64,
}

struct Style {
    format: Rc<Format>,
    is_struck: bool,
}

/// The strings that cells share, each on one line. Cells can share a long string of white space without end.
#[derive(Default)]
struct Strings {
    text: String,
    ends: Vec<u32>,
}

impl Strings {
    fn read(archive: &mut Archive<'_>, part: Option<&str>) -> Result<Self, Cause> {
        let mut strings = Strings::default();
        let Some(part) = part else { return Ok(strings) };
        let (mut in_text, mut start, mut gap, mut is_raised, mut is_struck) = (false, 0, false, false, false);
        let read = xml::walk(&archive.text(part)?, Kind::Xlsx, |node| {
            match node {
                // How Japanese words are pronounced.
                Node::Open(tag) if tag.name() == b"rPh" => return Ok(false),
                Node::Open(tag) => {
                    in_text = tag.name() == b"t";
                    match tag.name() {
                        b"r" | b"si" => (is_raised, is_struck) = (false, false),
                        b"strike" => is_struck = is_on(tag),
                        b"vertAlign" => is_raised = tag.attribute("val").is_some_and(|place| place == "superscript"),
                        _ => {}
                    }
                }
                Node::Text(text) if in_text && is_struck => gap |= text.contains(char::is_whitespace),
                Node::Text(text) if in_text => {
                    if mem::take(&mut is_raised) && is_exponent(text) {
                        strings.text.push('^');
                    }
                    for (i, word) in unescaped(text).split(char::is_whitespace).enumerate() {
                        gap |= i > 0;
                        if !word.is_empty() {
                            let space = if mem::take(&mut gap) && strings.text.len() > start { " " } else { "" };
                            strings.text.extend([space, word]);
                        }
                    }
                }
                Node::Text(_) => {}
                Node::Close(name) => {
                    in_text = false;
                    if name == b"si" {
                        start = strings.text.len();
                        gap = false;
                        strings.ends.push(start as u32);
                    }
                }
            }
            Ok(true)
        });
        read.map_err(|cause| cause.in_part(part))?;
        Ok(strings)
    }

    fn get(&self, index: usize) -> Option<&str> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.text.get(start as usize..*self.ends.get(index)? as usize)
    }
}

/// The styles of cells.
fn styles(archive: &mut Archive<'_>, part: Option<&str>) -> Result<Vec<Style>, Cause> {
    let Some(part) = part else { return Ok(Vec::new()) };
    let (mut by_id, mut styles) = (HashMap::new(), Vec::new());
    // Whether each font strikes its words through.
    let mut fonts = Vec::new();
    let (mut in_fonts, mut in_cells) = (false, false);
    let read = xml::walk(&archive.text(part)?, Kind::Xlsx, |node| {
        match node {
            Node::Open(tag) => match tag.name() {
                b"numFmt" => {
                    let format = Format::of(&tag.attribute("formatCode").unwrap_or_default());
                    by_id.insert(number(tag, "numFmtId"), Rc::new(format));
                }
                b"fonts" => in_fonts = true,
                b"font" if in_fonts => fonts.push(false),
                b"strike" if in_fonts => {
                    if let Some(font) = fonts.last_mut() {
                        *font = is_on(tag);
                    }
                }
                b"cellXfs" => in_cells = true,
                b"xf" if in_cells => {
                    let id = number(tag, "numFmtId");
                    let format = Rc::clone(by_id.entry(id).or_insert_with(|| Rc::new(Format::built_in(id))));
                    let is_struck = fonts.get(number(tag, "fontId")).is_some_and(|is_struck| *is_struck);
                    styles.push(Style { format, is_struck });
                }
                _ => {}
            },
            Node::Close(b"fonts") => in_fonts = false,
            Node::Close(b"cellXfs") => in_cells = false,
            _ => {}
        }
        check_entries(by_id.len().max(fonts.len()))?;
        if styles.len() > RECORDS { Err(Limit::Records(RECORDS).into()) } else { Ok(true) }
    });
    read.map_err(|cause| cause.in_part(part))?;
    Ok(styles)
}

fn number(tag: &Tag<'_>, attribute: &str) -> usize {
    tag.attribute(attribute).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The rows of a sheet as text.
fn rows(sheet: &str, book: &Book) -> Result<String, Cause> {
    let mut rows = Rows::default();
    let mut cell = Cell::default();
    let (mut row, mut column, mut in_value, mut in_formula, mut is_struck) = (0_usize, 0, false, false, false);
    let mut merged = merged_rows(sheet)?;
    xml::walk(sheet, Kind::Xlsx, |node| {
        match node {
            Node::Open(tag) => match tag.name() {
                b"row" => row = tag.attribute("r").and_then(|row| row.parse().ok()).unwrap_or(row.saturating_add(1)),
                b"c" => {
                    column = tag.attribute("r").and_then(|place| column_of(&place)).unwrap_or(column);
                    cell = Cell { kind: tag.attribute("t"), style: number(tag, "s"), ..Cell::default() };
                    is_struck = false;
                }
                b"r" => is_struck = false,
                b"strike" => is_struck = is_on(tag),
                b"v" | b"t" => in_value = true,
                b"f" => in_formula = true,
                b"rPh" => return Ok(false),
                _ => {}
            },
            Node::Text(text) if in_value && is_struck => cell.value.extend(text.chars().find(|c| c.is_whitespace())),
            Node::Text(text) if in_value => cell.value.push_str(&unescaped(text)),
            Node::Text(text) if in_formula => cell.formula.push_str(text),
            Node::Close(b"v" | b"t") => in_value = false,
            Node::Close(b"f") => in_formula = false,
            Node::Close(b"c") => {
                let cell = mem::take(&mut cell);
                let style = book.styles.get(cell.style);
                if style.is_none_or(|style| !style.is_struck) {
                    let (number, format) = (cell.number(), style.map(|style| &*style.format));
                    rows.shown(column, &cell.show(book, format)?, number)?;
                }
                column += 1;
            }
            Node::Close(b"row") => {
                merged.fill(row, &mut rows);
                rows.end_row()?;
                column = 0;
            }
            Node::Text(_) | Node::Close(_) => {}
        }
        Ok(true)
    })?;
    Ok(rows.finish())
}

/// The cells of a sheet that are merged with those below, which are listed after all rows.
fn merged_rows(sheet: &str) -> Result<MergedRows, Cause> {
    let mut cells = Vec::new();
    if !sheet.contains("mergeCell ") {
        return Ok(MergedRows::default());
    }
    xml::each_tag(sheet, Kind::Xlsx, |tag| {
        if tag.name() == b"mergeCell" && cells.len() < RECORDS {
            cells.extend(tag.attribute("ref").and_then(|range| merged(&range)));
        }
        Ok(true)
    })?;
    Ok(MergedRows::of(cells))
}

/// The cells of a range, if they are in several rows: `A2:B4`.
fn merged(range: &str) -> Option<Merged> {
    let (first, last) = range.split_once(':')?;
    let row = |place: &str| place.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse::<usize>().ok();
    let merged = Merged { first_row: row(first)?, last_row: row(last)?, column: column_of(first)? };
    (merged.first_row < merged.last_row).then_some(merged)
}

#[derive(Default)]
struct Cell {
    kind: Option<String>,
    style: usize,
    value: String,
    formula: String,
}

impl Cell {
    /// The number in the cell, if it has one.
    fn number(&self) -> Option<f64> {
        if matches!(self.kind.as_deref(), None | Some("n")) { self.value.parse().ok() } else { None }
    }

    fn show<'a>(self, book: &'a Book, format: Option<&Format>) -> Result<Cow<'a, str>, Cause> {
        let value = self.value;
        // Programs that do not compute leave the value to the next one that opens the file.
        if value.is_empty() && !self.formula.is_empty() {
            return Ok(format!("={}", self.formula).into());
        }
        let text = |text| match format {
            Some(format) => format.show_text(text),
            None => text,
        };
        Ok(match self.kind.as_deref() {
            Some("s") => {
                let string = value.trim().parse().ok().and_then(|index| book.strings.get(index));
                let no_string = || Cause::damaged(Kind::Xlsx, format!("it has no string {value}; {ADVICE}"));
                text(Cow::Borrowed(string.ok_or_else(no_string)?))
            }
            Some("b") if !value.trim().is_empty() => if value.trim() == "1" { "TRUE" } else { "FALSE" }.into(),
            None | Some("n") if !value.is_empty() => match format {
                Some(format) => format.show(&value, book.first_day).into(),
                None => Format::default().show(&value, book.first_day).into(),
            },
            Some("str" | "inlineStr") => text(value.into()),
            _ => value.into(),
        })
    }
}

/// A text with the characters that XML cannot have, which Excel writes as `_x000D_` (ECMA-376, 22.9.2.19). Control
/// characters become spaces.
fn unescaped(text: &str) -> Cow<'_, str> {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("_x") {
        let code = after.split_at_checked(5).filter(|(code, _)| code.ends_with('_'));
        let unit = code.and_then(|(code, _)| u32::from_str_radix(&code[..4], 16).ok()).and_then(char::from_u32);
        found.push_str(before);
        if let Some(character) = unit {
            found.push(if character.is_control() { ' ' } else { character });
            rest = &after[5..];
        } else {
            found.push_str("_x");
            rest = after;
        }
    }
    if found.is_empty() {
        return Cow::Borrowed(rest);
    }
    found.push_str(rest);
    Cow::Owned(found)
}

/// The column of a cell's name, from 0: 27 for `AB7`.
fn column_of(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let column =
        letters.take(4).fold(0, |column, letter| column * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    column.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::COLUMNS;

    #[test]
    fn escaped_characters_are_read() {
        let check = |text: &str, expect: &str| assert_eq!(unescaped(text), expect);
        check("one_x000D_\ntwo", "one \ntwo");
        check("_x005F_x000D_", "_x000D_");
        check("_x00e9_t_x00E9_", "été");
        check("max_x, _x12_x00_xD800_ _xé00_", "max_x, _x12_x00_xD800_ _xé00_");
        check("plain", "plain");
    }

    #[test]
    fn columns_have_letters() {
        assert_eq!(column_of("A1"), Some(0));
        assert_eq!(column_of("ab7"), Some(27));
        assert_eq!(column_of("XFD1"), Some(COLUMNS - 1));
        assert_eq!(column_of("12"), None);
    }
}
