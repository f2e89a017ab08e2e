//! Word documents (Office Open XML): paragraphs, headings, lists, tables, formulas, footnotes and endnotes.
//!
//! Left out: page headers and footers, comments, deleted text, pictures.

use std::collections::HashMap;

use crate::formula::Formula;
use crate::limit::check_entries;
use crate::office::{self, Relations};
use crate::prose::{Gap, Prose, Script};
use crate::source::first_heading;
use crate::xml::{self, Node, Tag};
use crate::{Cause, Kind, Source, symbol};

/// Style ids, which differ from one language of Word to another, and the mark before a paragraph of the style.
type Marks = HashMap<String, String>;

/// A `.docx` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = office::open(bytes, Kind::Docx)?;
    let body = office::main_part(&mut archive)?;
    let relations = Relations::of(&mut archive, &body)?;
    let mut part = |kind| match relations.by_kind(kind) {
        Some(name) => archive.text_if_any(name),
        None => Ok(None),
    };
    let marks = marks(&part("/styles")?.unwrap_or_default())?;
    let notes = [part("/footnotes")?, part("/endnotes")?];

    let mut prose = Prose::default();
    write(&archive.text(&body)?, &marks, &mut prose)?;
    for note in notes.into_iter().flatten() {
        prose.gap(Gap::Paragraph);
        write(&note, &marks, &mut prose)?;
    }
    let text = prose.finish()?;
    let title = office::title(&mut archive)?.or_else(|| first_heading(&text));
    Source::whole(path, Kind::Docx, title, text)
}

fn marks(styles: &str) -> Result<Marks, Cause> {
    let mut marks = Marks::new();
    let mut style = None;
    xml::each_tag(styles, Kind::Docx, |tag| {
        match tag.name() {
            b"style" => style = tag.attribute("styleId"),
            b"name" => {
                let name = tag.attribute("val").unwrap_or_default().to_ascii_lowercase();
                if let (Some(style), Some(mark)) = (style.take(), mark_of_style(&name)) {
                    marks.insert(style, mark);
                }
            }
            _ => {}
        }
        check_entries(marks.len())?;
        Ok(true)
    })?;
    Ok(marks)
}

/// The mark for one of Word's own styles, whose names are English whatever the language of their ids.
fn mark_of_style(name: &str) -> Option<String> {
    if let Some(level) = name.strip_prefix("heading ") {
        let level: usize = level.parse().ok()?;
        return Some(format!("{} ", "#".repeat(level.clamp(1, 6))));
    }
    match name {
        "title" => Some("# ".to_owned()),
        _ if name.starts_with("list bullet") || name.starts_with("list number") => Some("- ".to_owned()),
        _ => None,
    }
}

/// Writes the text of a document or notes part.
fn write(xml: &str, marks: &Marks, prose: &mut Prose) -> Result<(), Cause> {
    let (mut in_text, mut script, mut formula) = (false, Script::Line, Formula::default());
    // The font of the run, if it has symbols in the places of letters.
    let mut font: Option<String> = None;
    xml::walk(xml, Kind::Docx, |node| {
        if let Node::Open(tag) = &node
            && is_left_out(tag.name())
        {
            return Ok(false);
        }
        if formula.takes(&node, prose)? {
            return Ok(true);
        }
        match node {
            Node::Open(tag) => match tag.name() {
                b"t" => in_text = true,
                b"r" => (script, font) = (Script::Line, None),
                b"vertAlign" => script = script_of(tag),
                b"rFonts" => font = tag.attribute("ascii").filter(|font| symbol::is_symbolic(font)),
                b"sym" => {
                    if let Some(symbol) = symbol_of(tag) {
                        prose.run(script, symbol.encode_utf8(&mut [0; 4]));
                    }
                }
                _ => open(tag, marks, prose),
            },
            Node::Close(b"t") => in_text = false,
            Node::Close(name) => close(name, prose),
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

/// The same text box a second time for old readers; text that was deleted or moved elsewhere; a style that was changed;
/// how Japanese words are pronounced.
fn is_left_out(name: &[u8]) -> bool {
    matches!(name, b"Fallback" | b"del" | b"moveFrom" | b"pPrChange" | b"rt")
}

/// How the words of a run are set, by its `vertAlign`.
fn script_of(tag: &Tag<'_>) -> Script {
    match tag.attribute("val").as_deref() {
        Some("superscript") => Script::Super,
        Some("subscript") => Script::Sub,
        _ => Script::Line,
    }
}

fn open(tag: &Tag<'_>, marks: &Marks, prose: &mut Prose) {
    match tag.name() {
        b"pStyle" => {
            if let Some(mark) = tag.attribute("val").and_then(|style| marks.get(&style)) {
                prose.lead(mark);
            }
        }
        b"numId" if tag.attribute("val").is_some_and(|list| list != "0") => prose.lead_if_none("- "),
        b"tab" | b"ptab" => prose.gap(Gap::Space),
        b"p" | b"br" | b"cr" => prose.gap(Gap::Line),
        b"noBreakHyphen" => prose.text("-"),
        b"footnoteReference" | b"endnoteReference" => prose.text(&note_mark(tag)),
        b"footnote" | b"endnote" => prose.lead(&format!("{}: ", note_mark(tag))),
        b"tr" => prose.open_row(),
        b"tc" => prose.open_cell(),
        _ => {}
    }
}

fn close(name: &[u8], prose: &mut Prose) {
    match name {
        b"p" => {
            prose.lead("");
            prose.gap(Gap::Paragraph);
        }
        b"tbl" => prose.gap(Gap::Paragraph),
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
