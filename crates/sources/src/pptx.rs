//! PowerPoint presentations: one section a slide, with its title as a heading, the numbers of its lists, the words of diagrams
//! after its own, and the speaker's notes at its end.
//!
//! Left out: numbers, dates and footers of slides, charts, pictures.

use crate::archive::Archive;
use crate::formula::Formula;
use crate::limit::{check_entries, check_text};
use crate::office::{self, Relations};
use crate::pptx_numbers::AutoNumbers;
use crate::prose::{Gap, Prose, Script};
use crate::source::{Part, first_heading};
use crate::xml::{self, ADVICE, Node, Tag};
use crate::{Cause, Kind, Source};

/// A `.pptx` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = office::open(bytes, Kind::Pptx)?;
    let presentation = office::main_part(&mut archive)?;
    let relations = Relations::of(&mut archive, &presentation)?;
    let mut ids = Vec::new();
    let read = xml::each_tag(&archive.text(&presentation)?, Kind::Pptx, |tag| {
        if tag.name() == b"sldId" {
            ids.extend(tag.relation());
        }
        check_entries(ids.len())?;
        Ok(true)
    });
    read.map_err(|cause| cause.in_part(&presentation))?;
    let (mut parts, mut length) = (Vec::new(), 0);
    for (i, id) in ids.iter().enumerate() {
        let number = i + 1;
        let slide = relations.by_id(id);
        let slide = slide.ok_or_else(|| Cause::damaged(Kind::Pptx, format!("slide {number} is missing; {ADVICE}")))?;
        let text = text(&mut archive, slide)?;
        length += text.len();
        check_text(length)?;
        let title = first_heading(&text).map_or(format!("slide {number}"), |title| format!("slide {number}: {title}"));
        parts.push(Part { title: Some(title), text, ..Part::default() });
    }
    let title = office::title(&mut archive)?;
    Source::joined(path, Kind::Pptx, title, parts)
}

/// The text of a slide, of its diagrams and of its notes.
fn text(archive: &mut Archive<'_>, slide: &str) -> Result<String, Cause> {
    let mut prose = Prose::default();
    write(archive, slide, &mut prose)?;
    let relations = Relations::of(archive, slide)?;
    for diagram in relations.all_by_kind("/diagramData") {
        prose.gap(Gap::Paragraph);
        write(archive, diagram, &mut prose)?;
    }
    if let Some(notes) = relations.by_kind("/notesSlide") {
        prose.gap(Gap::Paragraph);
        prose.lead("Notes: ");
        write(archive, notes, &mut prose)?;
    }
    Ok(prose.finish()?)
}

/// Writes the text of the shapes of a slide.
fn write(archive: &mut Archive<'_>, part: &str, prose: &mut Prose) -> Result<(), Cause> {
    write_shapes(&archive.text(part)?, prose).map_err(|cause| cause.in_part(part))
}

fn write_shapes(xml: &str, prose: &mut Prose) -> Result<(), Cause> {
    let (mut in_text, mut is_title, mut is_left_out) = (false, false, false);
    let (mut script, mut formula, mut numbers) = (Script::Line, Formula::default(), AutoNumbers::default());
    xml::walk(xml, Kind::Pptx, |node| {
        if let Node::Open(tag) = &node
            && tag.name() == b"Fallback"
        {
            return Ok(false);
        }
        if formula.takes(&node, prose)? {
            return Ok(true);
        }
        if let Node::Open(tag) = &node {
            numbers.open(tag);
        }
        match node {
            Node::Open(tag) => match tag.name() {
                b"ph" => match tag.attribute("type").as_deref() {
                    Some("title" | "ctrTitle") => {
                        is_title = true;
                        prose.lead("# ");
                    }
                    Some("sldNum" | "dt" | "ftr" | "hdr" | "sldImg") => is_left_out = true,
                    _ => {}
                },
                b"t" => in_text = !is_left_out,
                b"r" | b"fld" => script = Script::Line,
                b"rPr" => script = script_of(tag),
                b"br" | b"p" => prose.gap(Gap::Line),
                b"tab" => prose.gap(Gap::Space),
                b"tr" => prose.open_row(),
                b"tc" => prose.open_cell(),
                _ => {}
            },
            Node::Text(text) if in_text => {
                if !text.trim().is_empty()
                    && let Some(number) = numbers.words()
                {
                    prose.lead_if_none(&number);
                }
                prose.run(script, text);
            }
            Node::Text(_) => {}
            Node::Close(name) => match name {
                b"t" => in_text = false,
                b"pPr" => numbers.end_properties(),
                b"sp" => {
                    // An empty title has no heading.
                    if is_title {
                        prose.lead("");
                    }
                    (is_title, is_left_out) = (false, false);
                    prose.gap(Gap::Paragraph);
                }
                b"tbl" => prose.gap(Gap::Paragraph),
                b"tr" => prose.close_row(),
                b"tc" => prose.close_cell(),
                _ => {}
            },
        }
        Ok(true)
    })
}

/// How the words of a run are set, by its `baseline` in thousandths of a percent.
fn script_of(properties: &Tag<'_>) -> Script {
    let height = properties.attribute("baseline").and_then(|height| height.trim_end_matches('%').parse().ok());
    Script::at(height.unwrap_or(0.0))
}
