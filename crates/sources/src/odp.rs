//! OpenDocument presentations (LibreOffice): one section a slide, with its title as a heading and the speaker's notes at
//! its end.
//!
//! Left out: numbers, dates and footers of slides, comments, text that is struck through or hidden, charts, pictures.

use std::mem;

use crate::limit::{check_entries, check_text};
use crate::odt::Walk;
use crate::prose::Gap;
use crate::source::{Part, first_heading};
use crate::xml::Node;
use crate::{Cause, Kind, Source, opendocument};

const TITLE: &str = "# ";

/// A `.odp` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = opendocument::open(bytes, Kind::Odp)?;
    let (mut walk, mut parts, mut length) = (Walk::default(), Vec::new(), 0);
    walk.lists.joins = true;
    walk.read_styles(&mut archive)?;
    // What is written before the next words.
    let mut mark = None;
    opendocument::walk(&mut archive, |node, archive| {
        match &node {
            Node::Open(tag) => match (tag.name(), tag.attribute("class").as_deref()) {
                (b"frame", Some("date-time" | "footer" | "header" | "page-number")) => return Ok(false),
                (b"frame", Some("title")) => mark = Some(TITLE),
                (b"notes", _) => mark = Some("Notes: "),
                _ => {}
            },
            Node::Text(text) if walk.is_in_paragraph() && !text.trim().is_empty() => {
                if let Some(mark) = mark.take() {
                    walk.prose.lead(mark);
                }
            }
            _ => {}
        }
        let is_read = walk.node(&node, archive)?;
        match node {
            Node::Close(b"frame" | b"custom-shape") => {
                // An empty title has no heading.
                mark = mark.filter(|mark| *mark != TITLE);
                walk.lists.end_part();
                walk.prose.gap(Gap::Paragraph);
            }
            Node::Close(b"notes") => mark = None,
            Node::Close(b"page") => {
                let text = mem::take(&mut walk.prose).finish()?;
                length += text.len();
                check_text(length)?;
                check_entries(parts.len())?;
                let number = format!("slide {}", parts.len() + 1);
                let title = first_heading(&text).map_or(number.clone(), |title| format!("{number}: {title}"));
                parts.push(Part { title: Some(title), text, ..Part::default() });
            }
            _ => {}
        }
        Ok(is_read)
    })?;
    let title = opendocument::title(&mut archive)?;
    Source::joined(path, Kind::Odp, title, parts)
}
