//! Word documents (Office Open XML): paragraphs, headings, lists, tables, footnotes and endnotes.
//!
//! Left out: page headers and footers, comments, deleted text, pictures.

use std::collections::HashMap;

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::archive::Archive;
use crate::limit::NESTING;
use crate::prose::{Gap, Prose};
use crate::source::first_heading;
use crate::xml::{self, Tag};
use crate::{Cause, Kind, Limit, Source};

/// Style ids, which differ from one language of Word to another, and the mark before a paragraph of the style.
type Marks = HashMap<String, String>;

/// A `.docx` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    refuse_compound_file(bytes)?;
    let mut archive = Archive::open(bytes, Kind::Docx)?;
    let body = related(&mut archive, "_rels/.rels", "", "/officeDocument")?
        .ok_or_else(|| Cause::damaged(Kind::Docx, "its relations name no main document"))?;
    let (folder, file) = body.rsplit_once('/').unwrap_or(("", &body));
    let relations =
        if folder.is_empty() { format!("_rels/{file}.rels") } else { format!("{folder}/_rels/{file}.rels") };

    let mut part = |kind| match related(&mut archive, &relations, folder, kind)? {
        Some(name) => archive.text_if_any(&name),
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
    let text = prose.finish();
    let title = match archive.text_if_any("docProps/core.xml")? {
        Some(core) => xml::text_of(&core, "title", Kind::Docx)?,
        None => None,
    };
    Source::whole(path, Kind::Docx, title.or_else(|| first_heading(&text)), text)
}

/// Word keeps a document with a password in the container of its old `.doc` files.
fn refuse_compound_file(bytes: &[u8]) -> Result<(), Cause> {
    const COMPOUND_FILE: [u8; 8] = [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
    if !bytes.starts_with(&COMPOUND_FILE) {
        return Ok(());
    }
    let encrypted: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    if bytes.windows(encrypted.len()).any(|window| window == encrypted) {
        return Err(Cause::Encrypted);
    }
    Err(Cause::damaged(Kind::Docx, "the file is in the older .doc format; save it as .docx"))
}

/// The name of the part that a relations file gives for a kind of relation.
fn related(archive: &mut Archive<'_>, relations: &str, folder: &str, kind: &str) -> Result<Option<String>, Cause> {
    let Some(relations) = archive.text_if_any(relations)? else { return Ok(None) };
    let mut target = None;
    xml::each_tag(&relations, Kind::Docx, |tag| {
        let found = tag.attribute("Type").is_some_and(|found| found.ends_with(kind));
        if found {
            target = tag.attribute("Target");
        }
        !found
    })?;
    Ok(target.map(|target| match target.strip_prefix('/') {
        Some(from_root) => from_root.to_owned(),
        None if folder.is_empty() => target,
        None => format!("{folder}/{target}"),
    }))
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
        true
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
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut in_text = false;
    let mut depth = 0_usize;
    loop {
        match reader.read_event().map_err(|error| xml::invalid(&reader, Kind::Docx, &error))? {
            Event::Start(start) => match start.local_name().into_inner() {
                // The same text box a second time for old readers; text that was moved elsewhere; a style that was
                // changed.
                b"Fallback" | b"moveFrom" | b"pPrChange" => {
                    reader.read_to_end(start.name()).map_err(|error| xml::invalid(&reader, Kind::Docx, &error))?;
                }
                name => {
                    depth += 1;
                    if depth > NESTING {
                        return Err(Limit::Nesting(NESTING).into());
                    }
                    match name {
                        b"t" => in_text = true,
                        _ => open(&Tag::new(start), marks, prose),
                    }
                }
            },
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                match end.local_name().into_inner() {
                    b"t" => in_text = false,
                    name => close(name, prose),
                }
            }
            Event::Text(text) if in_text => prose.text(&text.xml10_content().unwrap_or_default()),
            Event::CData(text) if in_text => prose.text(&text.xml10_content().unwrap_or_default()),
            Event::GeneralRef(entity) if in_text => {
                if let Some(character) = xml::character(&entity) {
                    prose.text(character.encode_utf8(&mut [0; 4]));
                }
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
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
