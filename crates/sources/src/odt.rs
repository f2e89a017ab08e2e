//! OpenDocument texts (LibreOffice): headings and lists with their numbers, paragraphs, tables; footnotes in brackets where
//! they are referred to; formulas as LibreOffice's users write them, `{a+b} over 2`.
//!
//! Left out: page headers and footers, comments, text that is deleted, struck through or hidden, pictures.

use crate::archive::{Archive, resolve};
use crate::merged_cells::Rows;
use crate::odt_lists::Lists;
use crate::odt_styles::{Look, Styles};
use crate::prose::{Gap, Prose};
use crate::source::first_heading;
use crate::xml::{self, Node, Tag};
use crate::{Cause, Kind, Source, opendocument};

/// A `.odt` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = opendocument::open(bytes, Kind::Odt)?;
    let mut walk = Walk::default();
    walk.read_styles(&mut archive)?;
    opendocument::walk(&mut archive, |node, archive| walk.node(&node, archive))?;
    let text = walk.prose.finish()?;
    let title = opendocument::title(&mut archive)?;
    Source::whole(path, Kind::Odt, title.or_else(|| first_heading(&text)), text)
}

/// The formula in an object of its own, which has it in LibreOffice's notation beside MathML.
fn formula(archive: &mut Archive<'_>, object: &Tag<'_>) -> Result<Option<String>, Cause> {
    let Some(folder) = object.attribute("href") else { return Ok(None) };
    let name = resolve("", &format!("{folder}/content.xml"));
    match archive.text_if_any(&name)? {
        Some(content) if content.contains("StarMath") => {
            xml::text_of(&content, "annotation", archive.kind()).map_err(|cause| cause.in_part(&name))
        }
        _ => Ok(None),
    }
}

/// A number of rows or columns, which is 1 unless an attribute tells it.
fn number(tag: &Tag<'_>, attribute: &str) -> usize {
    tag.attribute(attribute).and_then(|number| number.parse().ok()).unwrap_or(1)
}

/// A walk through the text of a document, which presentations have on their slides.
#[derive(Default)]
pub(crate) struct Walk {
    pub prose: Prose,
    styles: Styles,
    /// How words are set in the open paragraphs and spans, outermost first.
    looks: Vec<Look>,
    /// The numbers of open paragraphs and notes.
    paragraphs: usize,
    notes: usize,
    pub lists: Lists,
    /// Whether the open heading has a number, which it may also have as text.
    has_number: bool,
    /// The marks of the paragraphs around the open text boxes.
    leads: Vec<String>,
    /// Whether the rows that are read name columns.
    is_header: bool,
}

impl Walk {
    /// Reads the styles that all parts of a document share.
    pub fn read_styles(&mut self, archive: &mut Archive<'_>) -> Result<(), Cause> {
        opendocument::each_style(archive, |tag| {
            self.lists.define(tag);
            self.lists.check()
        })
    }

    /// Writes what a node contributes; returns whether the content of an element follows.
    pub fn node(&mut self, node: &Node<'_>, archive: &mut Archive<'_>) -> Result<bool, Cause> {
        match node {
            Node::Open(tag) if tag.full_name() == b"draw:object" => {
                if let Some(formula) = formula(archive, tag)? {
                    self.prose.text(&formula);
                }
            }
            Node::Open(tag) => {
                self.styles.take(tag)?;
                self.lists.define(tag);
                self.lists.check()?;
                return Ok(self.open(tag));
            }
            Node::Close(name) => self.close(name),
            Node::Text(text) if self.is_in_paragraph() => {
                let look = self.look();
                if look.is_left_out() {
                    self.prose.leave_out(text);
                } else {
                    self.prose.run(look.script(), text);
                }
            }
            Node::Text(_) => {}
        }
        Ok(true)
    }

    /// Whether text is read.
    pub fn is_in_paragraph(&self) -> bool {
        self.paragraphs > 0
    }

    fn look(&self) -> Look {
        self.looks.last().copied().unwrap_or_default()
    }

    fn open_paragraph(&mut self, tag: &Tag<'_>) {
        self.paragraphs += 1;
        self.looks.push(self.styles.look(tag, Look::default()));
    }

    /// Writes what an element contributes before its content; returns whether its content follows.
    fn open(&mut self, tag: &Tag<'_>) -> bool {
        match tag.full_name() {
            // The descriptions of pictures; `text:title` is a field.
            b"svg:title" | b"svg:desc" => return false,
            _ => {}
        }
        match tag.name() {
            b"annotation" | b"tracked-changes" | b"forms" | b"ruby-text" | b"note-citation" => return false,
            b"covered-table-cell" => {
                /// Texts have no wider cells; each takes time in its row.
                const MAX_COLUMNS: usize = 64;
                self.prose.covered_cells(number(tag, "number-columns-repeated").min(MAX_COLUMNS));
                return false;
            }
            b"h" => {
                let level = tag.attribute("outline-level").and_then(|level| level.parse().ok()).unwrap_or(1_usize);
                let number = self.lists.heading(tag, level);
                self.has_number = number.is_some();
                self.prose.lead(&format!("{} {}", "#".repeat(level.clamp(1, 6)), number.unwrap_or_default()));
                self.open_paragraph(tag);
            }
            b"number" if self.has_number => return false,
            b"p" => {
                self.has_number = false;
                if let Some(mark) = self.lists.paragraph() {
                    self.prose.lead_item(self.lists.depth() - 1, &mark);
                }
                self.open_paragraph(tag);
            }
            b"span" => self.looks.push(self.styles.look(tag, self.look())),
            b"list" => self.lists.open(tag),
            b"list-item" => self.lists.open_item(tag),
            b"list-header" => self.lists.close_item(),
            b"note-body" if self.look().is_left_out() => return false,
            b"note-body" => {
                self.notes += 1;
                self.prose.text(" [note: ");
            }
            b"text-box" => {
                let lead = self.prose.take_lead();
                self.leads.push(lead);
                self.prose.gap(Gap::Paragraph);
            }
            b"s" | b"tab" => self.prose.gap(Gap::Space),
            b"line-break" => self.prose.gap(Gap::Line),
            b"table" => self.prose.open_table(),
            b"table-header-rows" => self.is_header = true,
            b"table-row" => {
                self.prose.open_row();
                if self.is_header {
                    self.prose.mark_header();
                }
            }
            b"table-cell" => {
                self.prose.open_cell();
                if let Some(span) = self.prose.span().filter(|_| number(tag, "number-rows-spanned") > 1) {
                    span.rows = Rows::Marked;
                }
            }
            _ => {}
        }
        true
    }

    fn close(&mut self, name: &[u8]) {
        match name {
            b"h" | b"p" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                self.looks.pop();
                if self.notes == 0 {
                    self.prose.lead("");
                    self.prose.gap(if self.lists.depth() > 0 { Gap::Line } else { Gap::Paragraph });
                } else {
                    self.prose.gap(Gap::Space);
                }
            }
            b"span" => drop(self.looks.pop()),
            b"list" => {
                self.lists.close();
                self.prose.gap(if self.lists.depth() > 0 { Gap::Line } else { Gap::Paragraph });
            }
            b"list-item" => self.lists.close_item(),
            b"text-box" => self.prose.lead(&self.leads.pop().unwrap_or_default()),
            b"note-body" => {
                self.notes = self.notes.saturating_sub(1);
                self.prose.end_bracket();
            }
            b"table" => {
                self.prose.close_table();
                self.prose.gap(Gap::Paragraph);
            }
            b"table-header-rows" => self.is_header = false,
            b"table-row" => self.prose.close_row(),
            b"table-cell" => self.prose.close_cell(),
            _ => {}
        }
    }
}
