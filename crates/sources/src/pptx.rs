//! PowerPoint presentations: one section a slide, with its title as a heading, the bullets and numbers of its lists, the words of
//! diagrams after its own, and the speaker's notes at its end.
//!
//! Left out: numbers, dates and footers of slides, text that is struck through, charts, pictures.

use std::mem;

use crate::archive::Archive;
use crate::formula::Formula;
use crate::limit::{check_entries, check_text};
use crate::merged_cells::Rows;
use crate::office::{self, Relations};
use crate::pptx_layouts::{Layout, Layouts, Placeholder, Role};
use crate::pptx_numbers::Lists;
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
    let (mut parts, mut length, mut layouts) = (Vec::new(), 0, Layouts::default());
    for (i, id) in ids.iter().enumerate() {
        let number = i + 1;
        let slide = relations.by_id(id);
        let slide = slide.ok_or_else(|| Cause::damaged(Kind::Pptx, format!("slide {number} is missing; {ADVICE}")))?;
        let text = text(&mut archive, slide, &mut layouts)?;
        length += text.len();
        check_text(length)?;
        let title = first_heading(&text).map_or(format!("slide {number}"), |title| format!("slide {number}: {title}"));
        parts.push(Part { title: Some(title), text, ..Part::default() });
    }
    let title = office::title(&mut archive)?;
    Source::joined(path, Kind::Pptx, title, parts)
}

/// The text of a slide, of its diagrams and of its notes.
fn text(archive: &mut Archive<'_>, slide: &str, layouts: &mut Layouts) -> Result<String, Cause> {
    let (mut prose, no_layout) = (Prose::default(), Layout::default());
    let relations = Relations::of(archive, slide)?;
    let layout = layouts.of(archive, &relations)?;
    write(archive, slide, &layout, &mut prose)?;
    for diagram in relations.all_by_kind("/diagramData") {
        prose.gap(Gap::Paragraph);
        write(archive, diagram, &no_layout, &mut prose)?;
    }
    if let Some(notes) = relations.by_kind("/notesSlide") {
        prose.gap(Gap::Paragraph);
        prose.lead("Notes: ");
        write(archive, notes, &no_layout, &mut prose)?;
    }
    Ok(prose.finish()?)
}

/// Writes the text of the shapes of a slide with this layout.
fn write(archive: &mut Archive<'_>, part: &str, layout: &Layout, prose: &mut Prose) -> Result<(), Cause> {
    write_shapes(&archive.text(part)?, layout, prose).map_err(|cause| cause.in_part(part))
}

fn write_shapes(xml: &str, layout: &Layout, prose: &mut Prose) -> Result<(), Cause> {
    let (mut in_text, mut is_title, mut is_left_out) = (false, false, false);
    let (mut script, mut formula, mut lists) = (Script::Line, Formula::default(), Lists::default());
    // Whether the next row names columns, and whether the run is struck through.
    let (mut is_header, mut is_struck) = (false, false);
    // The mark of a paragraph whose words so far are struck through.
    let mut mark = None;
    xml::walk(xml, Kind::Pptx, |node| {
        if let Node::Open(tag) = &node
            && tag.name() == b"Fallback"
        {
            return Ok(false);
        }
        let is_word = match &node {
            Node::Open(tag) => tag.name() == b"oMath",
            Node::Text(text) => in_text && !text.trim().is_empty(),
            Node::Close(_) => false,
        };
        if is_word {
            mark = lists.words().or(mark.take());
        }
        if is_word && !is_struck {
            prose.add_lead(&mark.take().unwrap_or_default());
        }
        if formula.takes(&node, prose)? {
            return Ok(true);
        }
        match &node {
            Node::Open(tag) => lists.open(tag),
            Node::Close(name) => lists.close(name),
            Node::Text(_) => {}
        }
        match node {
            Node::Open(tag) => match tag.name() {
                b"ph" => match Placeholder::of(tag) {
                    Some(placeholder) => {
                        lists.inherit(layout.style(placeholder));
                        if placeholder.role == Role::Title {
                            is_title = true;
                            prose.lead("# ");
                        }
                    }
                    None => is_left_out = true,
                },
                b"t" => in_text = !is_left_out,
                b"r" | b"fld" => script = Script::Line,
                b"rPr" => (script, is_struck) = (script_of(tag), is_struck_through(tag)),
                b"p" => {
                    mark = None;
                    prose.gap(Gap::Line);
                }
                b"br" => prose.gap(Gap::Line),
                b"tab" => prose.gap(Gap::Space),
                b"tbl" => prose.open_table(),
                b"tblPr" => is_header = is_set(tag, "firstRow"),
                b"tr" => {
                    prose.open_row();
                    if mem::take(&mut is_header) {
                        prose.mark_header();
                    }
                }
                b"tc" => open_cell(tag, prose),
                _ => {}
            },
            Node::Text(text) if in_text && is_struck => prose.leave_out(text),
            Node::Text(text) if in_text => prose.run(script, text),
            Node::Text(_) => {}
            Node::Close(name) => match name {
                b"t" => in_text = false,
                b"r" | b"fld" | b"br" => is_struck = false,
                b"sp" => {
                    // An empty title has no heading.
                    if is_title {
                        prose.lead("");
                    }
                    (is_title, is_left_out) = (false, false);
                    prose.gap(Gap::Paragraph);
                }
                b"tbl" => {
                    prose.close_table();
                    prose.gap(Gap::Paragraph);
                }
                b"tr" => prose.close_row(),
                b"tc" => prose.close_cell(),
                _ => {}
            },
        }
        Ok(true)
    })
}

/// Starts a cell of a table. Those that another one covers are there too.
fn open_cell(tag: &Tag<'_>, prose: &mut Prose) {
    prose.open_cell();
    let has_rows = tag.attribute("rowSpan").and_then(|rows| rows.parse().ok()).is_some_and(|rows: usize| rows > 1);
    if let Some(span) = prose.span() {
        span.rows = match (is_set(tag, "hMerge"), is_set(tag, "vMerge"), has_rows) {
            (true, ..) => Rows::Covered,
            (_, true, _) => Rows::Continued,
            (.., true) => Rows::Marked,
            _ => Rows::One,
        };
    }
}

fn is_set(tag: &Tag<'_>, attribute: &str) -> bool {
    tag.attribute(attribute).is_some_and(|value| value == "1" || value == "true")
}

fn is_struck_through(properties: &Tag<'_>) -> bool {
    properties.attribute("strike").is_some_and(|strike| strike != "noStrike")
}

/// How the words of a run are set, by its `baseline` in thousandths of a percent.
fn script_of(properties: &Tag<'_>) -> Script {
    let height = properties.attribute("baseline").and_then(|height| height.trim_end_matches('%').parse().ok());
    Script::at(height.unwrap_or(0.0))
}
