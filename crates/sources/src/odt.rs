//! OpenDocument texts (LibreOffice): headings, paragraphs, lists, tables; footnotes in brackets where they are referred to.
//!
//! Left out: page headers and footers, comments, deleted text, pictures.

use crate::archive::Archive;
use crate::prose::{Gap, Prose};
use crate::source::first_heading;
use crate::xml::{self, Node, Tag};
use crate::{Cause, Kind, Source};

/// A `.odt` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = Archive::open(bytes, Kind::Odt)?;
    let mut is_encrypted = false;
    xml::each_tag(&archive.text_if_any("META-INF/manifest.xml")?.unwrap_or_default(), Kind::Odt, |tag| {
        is_encrypted = tag.name() == b"encryption-data";
        Ok(!is_encrypted)
    })?;
    if is_encrypted {
        return Err(Cause::Encrypted);
    }
    let mut walk = Walk::default();
    xml::walk(&archive.text("content.xml")?, Kind::Odt, |node| {
        match node {
            Node::Open(tag) => return Ok(walk.open(tag)),
            Node::Close(name) => walk.close(name),
            Node::Text(text) if walk.paragraphs > 0 => walk.prose.text(text),
            Node::Text(_) => {}
        }
        Ok(true)
    })?;
    let text = walk.prose.finish()?;
    let title = match archive.text_if_any("meta.xml")? {
        Some(meta) => xml::text_of(&meta, "title", Kind::Odt)?,
        None => None,
    };
    Source::whole(path, Kind::Odt, title.or_else(|| first_heading(&text)), text)
}

#[derive(Default)]
struct Walk {
    prose: Prose,
    /// The numbers of open paragraphs, lists and notes.
    paragraphs: usize,
    lists: usize,
    notes: usize,
}

impl Walk {
    /// Writes what an element contributes before its content; returns whether its content follows.
    fn open(&mut self, tag: &Tag<'_>) -> bool {
        match tag.full_name() {
            // The descriptions of pictures; `text:title` is a field.
            b"svg:title" | b"svg:desc" => return false,
            _ => {}
        }
        match tag.name() {
            b"annotation" | b"tracked-changes" | b"forms" | b"ruby-text" | b"note-citation" | b"covered-table-cell" => {
                return false;
            }
            b"h" => {
                let level = tag.attribute("outline-level").and_then(|level| level.parse().ok()).unwrap_or(1_usize);
                self.prose.lead(&format!("{} ", "#".repeat(level.clamp(1, 6))));
                self.paragraphs += 1;
            }
            b"p" => self.paragraphs += 1,
            b"list" => self.lists += 1,
            b"list-item" => self.prose.lead_item(self.lists.saturating_sub(1), "- "),
            b"note-body" => {
                self.notes += 1;
                self.prose.text(" [note: ");
            }
            b"s" | b"tab" => self.prose.gap(Gap::Space),
            b"line-break" => self.prose.gap(Gap::Line),
            b"table-row" => self.prose.open_row(),
            b"table-cell" => self.prose.open_cell(),
            _ => {}
        }
        true
    }

    fn close(&mut self, name: &[u8]) {
        match name {
            b"h" | b"p" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                if self.notes == 0 {
                    self.prose.lead("");
                    self.prose.gap(if self.lists > 0 { Gap::Line } else { Gap::Paragraph });
                } else {
                    self.prose.gap(Gap::Space);
                }
            }
            b"list" => {
                self.lists = self.lists.saturating_sub(1);
                self.prose.gap(if self.lists > 0 { Gap::Line } else { Gap::Paragraph });
            }
            b"list-item" => self.prose.lead(""),
            b"note-body" => {
                self.notes = self.notes.saturating_sub(1);
                self.prose.end_bracket();
            }
            b"table" => self.prose.gap(Gap::Paragraph),
            b"table-row" => self.prose.close_row(),
            b"table-cell" => self.prose.close_cell(),
            _ => {}
        }
    }
}
