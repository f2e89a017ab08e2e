//! Word documents (Office Open XML): paragraphs, headings, lists, tables, formulas, fields of forms, footnotes and endnotes.
//!
//! Left out: page headers and footers, comments, text that is deleted, struck through or hidden, what a form shows in a
//! field without a value, pictures.

use std::collections::HashMap;
use std::iter;

use crate::docx_fields::FormField;
use crate::docx_numbers::Numbering;
use crate::formula::Formula;
use crate::limit::check_entries;
use crate::merged_cells::Rows;
use crate::office::{self, Relations, is_on};
use crate::prose::{Gap, Prose, Script};
use crate::source::first_heading;
use crate::xml::{self, Node, Tag};
use crate::{Cause, Kind, Source, symbol};

/// Styles by their ids, which differ from one language of Word to another.
type Styles = HashMap<String, Style>;

/// How the paragraphs of a style are marked. A style without a list or a level has that of the style on which it is based.
#[derive(Default)]
struct Style {
    based_on: Option<String>,
    mark: Option<String>,
    list: Option<u32>,
    level: Option<usize>,
}

/// The properties of the paragraph that is read.
#[derive(Default)]
struct Paragraph {
    style: Option<String>,
    list: Option<u32>,
    level: Option<usize>,
    /// Whether the properties are being read.
    is_open: bool,
    /// Whether its end was deleted or moved elsewhere: it is no paragraph of its own, and has no number.
    is_deleted: bool,
}

/// A `.docx` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = office::open(bytes, Kind::Docx)?;
    let body = office::main_part(&mut archive)?;
    let relations = Relations::of(&mut archive, &body)?;
    let mut part = |kind| -> Result<Option<(&str, String)>, Cause> {
        let Some(name) = relations.by_kind(kind) else { return Ok(None) };
        Ok(archive.text_if_any(name)?.map(|text| (name, text)))
    };
    let styles = match part("/styles")? {
        Some((name, xml)) => styles(&xml).map_err(|cause| cause.in_part(name))?,
        None => Styles::new(),
    };
    let mut numbering = match part("/numbering")? {
        Some((name, xml)) => Numbering::read(&xml).map_err(|cause| cause.in_part(name))?,
        None => Numbering::default(),
    };
    let notes = [part("/footnotes")?, part("/endnotes")?];

    let mut prose = Prose::default();
    write(&archive.text(&body)?, &styles, &mut numbering, &mut prose).map_err(|cause| cause.in_part(&body))?;
    for (name, note) in notes.into_iter().flatten() {
        prose.gap(Gap::Paragraph);
        write(&note, &styles, &mut numbering, &mut prose).map_err(|cause| cause.in_part(name))?;
    }
    let text = prose.finish()?;
    let title = office::title(&mut archive)?.or_else(|| first_heading(&text));
    Source::whole(path, Kind::Docx, title, text)
}

fn styles(xml: &str) -> Result<Styles, Cause> {
    let mut styles = Styles::new();
    let mut open = None;
    xml::each_tag(xml, Kind::Docx, |tag| {
        match tag.name() {
            b"style" => {
                open = tag.attribute("styleId");
                styles.extend(open.clone().map(|id| (id, Style::default())));
                check_entries(styles.len())?;
            }
            name => {
                if let Some(style) = open.as_ref().and_then(|id| styles.get_mut(id)) {
                    match name {
                        b"basedOn" => style.based_on = tag.attribute("val"),
                        b"name" => style.mark = tag.attribute("val").and_then(|name| mark_of_style(&name)),
                        b"numId" => style.list = number(tag),
                        b"ilvl" => style.level = number(tag).map(|level| level as usize),
                        _ => {}
                    }
                }
            }
        }
        Ok(true)
    })?;
    Ok(styles)
}

fn number(tag: &Tag<'_>) -> Option<u32> {
    tag.attribute("val")?.parse().ok()
}

/// The mark for one of Word's own styles, whose names are English whatever the language of their ids.
fn mark_of_style(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    if let Some(level) = name.strip_prefix("heading ") {
        let level: usize = level.parse().ok()?;
        return Some(format!("{} ", "#".repeat(level.clamp(1, 6))));
    }
    match &*name {
        "title" => Some("# ".to_owned()),
        _ if name.starts_with("list bullet") || name.starts_with("list number") => Some("- ".to_owned()),
        _ => None,
    }
}

/// Writes the text of a document or notes part.
fn write(xml: &str, styles: &Styles, numbering: &mut Numbering, prose: &mut Prose) -> Result<(), Cause> {
    let mut paragraph = Paragraph::default();
    let (mut in_text, mut is_hidden, mut script, mut formula) = (false, false, Script::Line, Formula::default());
    // Whether a field of a form has no value.
    let mut is_placeholder = false;
    // The font of the run, if it has symbols in the places of letters.
    let mut font: Option<String> = None;
    let mut field = FormField::default();
    // The marks of the paragraphs around the open text boxes.
    let mut leads = Vec::new();
    xml::walk(xml, Kind::Docx, |node| {
        if let Node::Open(tag) = &node
            && is_left_out(tag.name())
        {
            paragraph.is_deleted |= paragraph.is_open && matches!(tag.name(), b"del" | b"moveFrom");
            return Ok(false);
        }
        if formula.takes(&node, prose)? {
            return Ok(true);
        }
        if !is_hidden {
            field.take(&node, prose);
        }
        match node {
            Node::Open(tag) => match tag.name() {
                b"t" => in_text = true,
                b"r" => (is_hidden, script, font) = (false, Script::Line, None),
                b"vanish" | b"strike" | b"dstrike" => is_hidden |= is_on(tag),
                b"showingPlcHdr" => is_placeholder = is_on(tag),
                b"vertAlign" => script = script_of(tag),
                b"rFonts" => font = tag.attribute("ascii").filter(|font| symbol::is_symbolic(font)),
                b"sym" if !is_hidden => {
                    if let Some(symbol) = symbol_of(tag) {
                        prose.run(script, symbol.encode_utf8(&mut [0; 4]));
                    }
                }
                b"pPr" => paragraph = Paragraph { is_open: true, ..Paragraph::default() },
                b"pStyle" => paragraph.style = tag.attribute("val"),
                b"ilvl" => paragraph.level = number(tag).map(|level| level as usize),
                b"numId" => paragraph.list = number(tag),
                b"txbxContent" => {
                    leads.push(prose.take_lead());
                    prose.gap(Gap::Paragraph);
                }
                b"noBreakHyphen" | b"footnoteReference" | b"endnoteReference" if is_hidden => {}
                _ => open(tag, prose),
            },
            Node::Close(b"pPr") => {
                paragraph.is_open = false;
                paragraph.lead(styles, numbering, prose);
            }
            Node::Close(b"t") => in_text = false,
            Node::Close(b"sdt") => is_placeholder = false,
            Node::Close(b"txbxContent") => prose.lead(&leads.pop().unwrap_or_default()),
            Node::Close(name) => close(name, prose),
            Node::Text(text) if in_text && (is_hidden || is_placeholder) => prose.leave_out(text),
            Node::Text(text) if in_text => match &font {
                Some(font) => prose.run(script, &symbol::readable(font, text)),
                None => prose.run(script, text),
            },
            Node::Text(_) => {}
        }
        Ok(true)
    })
}

/// The character of a font that a `sym` names by its code.
fn symbol_of(tag: &Tag<'_>) -> Option<char> {
    let code = u32::from_str_radix(&tag.attribute("char")?, 16).ok()?;
    symbol::character(&tag.attribute("font").unwrap_or_default(), code)
}

/// The same text box a second time for old readers; text that was deleted or moved elsewhere; styles and cells that were changed;
/// how Japanese words are pronounced.
fn is_left_out(name: &[u8]) -> bool {
    matches!(
        name,
        b"Fallback" | b"del" | b"moveFrom" | b"pPrChange" | b"rPrChange" | b"tcPrChange" | b"trPrChange" | b"rt"
    )
}

/// How the words of a run are set, by its `vertAlign`.
fn script_of(tag: &Tag<'_>) -> Script {
    match tag.attribute("val").as_deref() {
        Some("superscript") => Script::Super,
        Some("subscript") => Script::Sub,
        _ => Script::Line,
    }
}

impl Paragraph {
    /// Sets the mark of the paragraph: that of a heading with its number, the number of an item, or `- `.
    fn lead(&self, styles: &Styles, numbering: &mut Numbering, prose: &mut Prose) {
        if self.is_deleted {
            return;
        }
        let mark = self.style.as_ref().and_then(|id| styles.get(id)?.mark.as_deref());
        // List 0 takes a paragraph out of the list of its style.
        let list = self.list.or_else(|| self.of_style(styles, |style| style.list)).filter(|list| *list > 0);
        let level = self.level.or_else(|| self.of_style(styles, |style| style.level)).unwrap_or(0);
        let number = list.and_then(|list| numbering.mark(list, level));
        match (mark, number) {
            (Some(mark), Some(number)) if mark.starts_with('#') => prose.lead(&format!("{mark}{number}")),
            (Some(_), Some(number)) => prose.lead(&number),
            (Some(mark), None) => prose.lead(mark),
            (None, Some(number)) => prose.lead_if_none(&number),
            (None, None) if list.is_some() => prose.lead_if_none("- "),
            (None, None) => {}
        }
    }

    /// A property of the style of the paragraph, or of the styles on which it is based.
    fn of_style<'a, T>(&self, styles: &'a Styles, property: impl Fn(&'a Style) -> Option<T>) -> Option<T> {
        // Styles of a damaged document may be based on one another.
        const MAX_STYLES: usize = 20;
        let own = self.style.as_ref().and_then(|id| styles.get(id));
        let chain = iter::successors(own, |style| styles.get(style.based_on.as_ref()?));
        chain.take(MAX_STYLES).find_map(property)
    }
}

fn open(tag: &Tag<'_>, prose: &mut Prose) {
    match tag.name() {
        b"tab" | b"ptab" => prose.gap(Gap::Space),
        b"p" | b"br" | b"cr" => prose.gap(Gap::Line),
        b"noBreakHyphen" => prose.text("-"),
        b"footnoteReference" | b"endnoteReference" => prose.text(&note_mark(tag)),
        b"footnote" | b"endnote" => prose.lead(&format!("{}: ", note_mark(tag))),
        b"tbl" => prose.open_table(),
        b"tr" => prose.open_row(),
        b"tblHeader" if is_on(tag) => prose.mark_header(),
        b"tc" => prose.open_cell(),
        b"gridSpan" | b"vMerge" => {
            if let Some(span) = prose.span() {
                match tag.name() {
                    b"gridSpan" => span.columns = number(tag).unwrap_or(1) as usize,
                    _ if tag.attribute("val").is_some_and(|value| value == "restart") => span.rows = Rows::Marked,
                    _ => span.rows = Rows::Continued,
                }
            }
        }
        _ => {}
    }
}

fn close(name: &[u8], prose: &mut Prose) {
    match name {
        b"p" => {
            prose.lead("");
            prose.gap(Gap::Paragraph);
        }
        b"tbl" => {
            prose.close_table();
            prose.gap(Gap::Paragraph);
        }
        b"tr" => prose.close_row(),
        b"tc" => prose.close_cell(),
        _ => {}
    }
}

/// `[^2]` for a footnote, `[^e2]` for an endnote, both in the text and before the note itself.
fn note_mark(tag: &Tag<'_>) -> String {
    let letter = if tag.name().starts_with(b"endnote") { "e" } else { "" };
    format!("[^{letter}{}]", tag.attribute("id").unwrap_or_default())
}
