//! OpenDocument spreadsheets (LibreOffice): one section a sheet, with its rows as lines ([`crate::rows`]), dates as dates
//! and numbers with all their digits; those that are shown with words, such as units, as they are shown.
//!
//! Formulas give the values that were stored with them. Left out: hidden sheets, which a line
//! names, what is struck through or hidden, comments, charts, pictures.

use std::mem;

use crate::limit::{CELL_BYTES, COLUMNS, check_entries, check_text};
use crate::merged_rows::MergedRows;
use crate::odt_styles::{Look, Styles};
use crate::rows::Rows;
use crate::source::Part;
use crate::xml::{Node, Tag};
use crate::{Cause, Kind, Limit, Source, opendocument};

/// The most rows of a sheet in LibreOffice.
const ROWS: usize = 1 << 20;

/// A `.ods` file.
pub(crate) fn source(path: &str, bytes: &[u8]) -> Result<Source, Cause> {
    let mut archive = opendocument::open(bytes, Kind::Ods)?;
    let (mut parts, mut length) = (Vec::new(), 0);
    let (mut sheet, mut styles) = (Sheet::default(), Styles::default());
    opendocument::walk(&mut archive, |node, _| {
        match node {
            Node::Open(tag) => match tag.name() {
                b"annotation" | b"dde-links" | b"shapes" | b"tracked-changes" => return Ok(false),
                b"table" if styles.look(tag, Look::default()).is_left_out() => {
                    check_entries(parts.len())?;
                    parts.push(Part::hidden_sheet(tag.attribute("name").unwrap_or_default()));
                    return Ok(false);
                }
                b"table" => sheet = Sheet { name: tag.attribute("name").unwrap_or_default(), ..Sheet::default() },
                _ => {
                    styles.take(tag)?;
                    return Ok(sheet.open(tag, &styles));
                }
            },
            Node::Text(text) => sheet.text(text)?,
            Node::Close(b"table") => {
                let Sheet { name, rows, .. } = mem::take(&mut sheet);
                let rows = rows.finish();
                length += rows.len();
                check_text(length)?;
                check_entries(parts.len())?;
                let text = if rows.is_empty() { rows } else { format!("# {name}\n\n{rows}") };
                parts.push(Part { title: Some(name), text, ..Part::default() });
            }
            Node::Close(name) => sheet.close(name)?,
        }
        Ok(true)
    })?;
    let title = opendocument::title(&mut archive)?;
    Source::joined(path, Kind::Ods, title, parts)
}

/// A sheet under construction.
#[derive(Default)]
struct Sheet {
    name: String,
    rows: Rows,
    merged: MergedRows,
    /// The number of the current row.
    row: usize,
    /// How often the current row is repeated in the sheet.
    row_times: usize,
    column: usize,
    cell: Option<Cell>,
    /// How words are set in the cell and in its open spans.
    looks: Vec<Look>,
    in_paragraph: bool,
}

#[derive(Default)]
struct Cell {
    /// How often the cell is repeated in its row.
    times: usize,
    /// How many rows it has.
    rows: usize,
    /// A number or a date, whatever its format shows.
    value: Option<String>,
    number: Option<f64>,
    formula: Option<String>,
    text: String,
}

impl Sheet {
    /// Takes the start of an element; returns whether its content follows.
    fn open(&mut self, tag: &Tag<'_>, styles: &Styles) -> bool {
        match tag.name() {
            b"table-row" => self.row_times = times(tag, "number-rows-repeated"),
            // What another cell covers is not shown.
            b"covered-table-cell" => {
                self.column = self.column.saturating_add(times(tag, "number-columns-repeated"));
                return false;
            }
            b"table-cell" => {
                let look = styles.look(tag, Look::default());
                let cell = if look.is_left_out() { Cell::default() } else { Cell::of(tag) };
                let rows = times(tag, "number-rows-spanned");
                let times = times(tag, "number-columns-repeated");
                self.cell = Some(Cell { times, rows, ..cell });
                self.looks = vec![look];
            }
            b"span" => self.looks.push(styles.look(tag, self.look())),
            b"p" | b"s" | b"tab" | b"line-break" => {
                self.in_paragraph |= tag.name() == b"p";
                if let Some(cell) = &mut self.cell {
                    cell.text.push(' ');
                }
            }
            _ => {}
        }
        true
    }

    fn look(&self) -> Look {
        self.looks.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str) -> Result<(), Limit> {
        let is_read = self.in_paragraph && !self.look().is_left_out();
        let Some(cell) = self.cell.as_mut().filter(|_| is_read) else { return Ok(()) };
        if cell.text.len() + text.len() > CELL_BYTES {
            return Err(Limit::CellBytes(CELL_BYTES));
        }
        cell.text.push_str(text);
        Ok(())
    }

    fn close(&mut self, name: &[u8]) -> Result<(), Limit> {
        match name {
            b"p" => self.in_paragraph = false,
            b"span" => drop(self.looks.pop()),
            b"table-cell" => {
                let cell = self.cell.take().unwrap_or_default();
                let shown = cell.shown();
                if shown.trim().is_empty() {
                    self.column = self.column.saturating_add(cell.times);
                    return Ok(());
                }
                let first = self.column;
                for _ in 0..cell.times.min(COLUMNS + 1) {
                    self.rows.shown(self.column, &shown, cell.number)?;
                    self.column += 1;
                }
                if cell.rows > 1 {
                    let text = self.rows.in_column(first).unwrap_or_default();
                    self.merged.start(first, self.row.saturating_add(cell.rows - 1), text);
                }
            }
            b"table-row" => {
                self.merged.fill(self.row, &mut self.rows);
                self.rows.end_rows(self.row_times)?;
                self.row = self.row.saturating_add(self.row_times);
                self.column = 0;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Cell {
    /// What the attributes of a cell say.
    fn of(tag: &Tag<'_>) -> Self {
        let value = match tag.attribute("value-type").as_deref() {
            Some("float") => tag.attribute("value"),
            Some("date") => tag.attribute("date-value").map(|date| date.replace('T', " ")),
            _ => None,
        };
        // A date does not parse as a number.
        let number = value.as_deref().and_then(|value| value.parse().ok());
        Cell { value, number, formula: tag.attribute("formula"), ..Cell::default() }
    }

    fn shown(&self) -> String {
        let is_blank = self.text.trim().is_empty();
        match (&self.value, &self.formula) {
            (Some(_), _) if self.number.is_some() && has_words(&self.text) => self.text.clone(),
            (Some(value), _) => value.clone(),
            // No program has computed it.
            (None, Some(formula)) if is_blank => formula.strip_prefix("of:").unwrap_or(formula).to_owned(),
            _ => self.text.clone(),
        }
    }
}

/// Whether a number is shown with words: its letters are more than those of `1,2E+05`.
fn has_words(shown: &str) -> bool {
    let is_number = |text: &str| text.trim().replace(',', ".").parse::<f64>().is_ok();
    shown.contains(char::is_alphabetic) && !is_number(shown)
}

/// How often an element is repeated.
fn times(tag: &Tag<'_>, attribute: &str) -> usize {
    tag.attribute(attribute).and_then(|times| times.parse().ok()).unwrap_or(1).min(ROWS)
}
