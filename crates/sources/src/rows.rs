//! Rows of a table as lines of text: `name: Ann | city: Bern`, so that each row can be understood without the others.
//!
//! The header is the first row with two cells or more, if none of them is a number; without a header a row is `Ann | Bern`.
//! Rows before the header, such as a title, are lines too. White space within a cell becomes one space.

use std::collections::BTreeMap;

use crate::Limit;
use crate::limit::{COLUMNS, TEXT_BYTES};

/// A table under construction.
#[derive(Default)]
pub(crate) struct Rows {
    text: String,
    /// `None` until a row with two cells was seen; then the names of columns, which may be none.
    header: Option<BTreeMap<usize, String>>,
    /// Whether a row followed the header.
    has_rows: bool,
}

impl Rows {
    /// Adds a row: its cells that are not empty, each with the number of its column.
    ///
    /// # Errors
    /// [`Limit::Columns`], [`Limit::TextBytes`].
    pub fn add(&mut self, cells: impl IntoIterator<Item = (usize, String)>) -> Result<(), Limit> {
        let cells = cells.into_iter().map(|(column, cell)| (column, one_line(&cell)));
        let cells: Vec<(usize, String)> = cells.filter(|(_, cell)| !cell.is_empty()).collect();
        if cells.iter().any(|(column, _)| *column >= COLUMNS) {
            return Err(Limit::Columns(COLUMNS));
        }
        match &self.header {
            _ if cells.is_empty() => return Ok(()),
            None if cells.len() > 1 => {
                let is_header = !cells.iter().any(|(_, cell)| is_number(cell));
                self.header = Some(if is_header { cells.iter().cloned().collect() } else { BTreeMap::new() });
                if is_header {
                    return Ok(());
                }
            }
            _ => self.has_rows |= self.header.is_some(),
        }
        for (i, (column, cell)) in cells.iter().enumerate() {
            self.text.push_str(if i > 0 { " | " } else { "" });
            if let Some(name) = self.header.as_ref().and_then(|header| header.get(column)) {
                self.text.extend([name, ": "]);
            }
            self.text.push_str(cell);
            if self.text.len() > TEXT_BYTES {
                return Err(Limit::TextBytes(TEXT_BYTES));
            }
        }
        self.text.push('\n');
        Ok(())
    }

    /// The lines. A header without rows is a line itself.
    pub fn finish(mut self) -> String {
        if !self.has_rows {
            let names: Vec<String> = self.header.unwrap_or_default().into_values().collect();
            self.text.push_str(&names.join(" | "));
        }
        self.text
    }
}

fn one_line(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a cell is a number as people write them: `-1,234.50`, `12 %`.
fn is_number(cell: &str) -> bool {
    let has_digits = cell.contains(|c: char| c.is_ascii_digit());
    has_digits
        && cell
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ',' | '\'' | '%' | ' ' | '€' | '$' | '£'))
}
