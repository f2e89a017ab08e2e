//! Merged cells of sheets: the text of a cell that is merged with those below is repeated in their rows, so that each row can be
//! understood without the others. Long texts are not repeated.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::limit::{COLUMNS, RECORDS};
use crate::rows::Rows;

/// The longest text that is repeated, in bytes.
const MAX_BYTES: usize = 200;
/// The most columns with merged cells in a row.
const MAX_COLUMNS: usize = 64;

/// The merged cells of a sheet.
#[derive(Default)]
pub(crate) struct MergedRows {
    /// Those that start in rows to come, the next one last.
    next: Vec<Merged>,
    /// The last rows and the texts of those that have started, by their columns.
    open: BTreeMap<usize, (usize, String)>,
}

/// A cell that is merged with those below.
pub(crate) struct Merged {
    pub first_row: usize,
    pub last_row: usize,
    pub column: usize,
}

impl MergedRows {
    /// The merged cells of a sheet, in any order; more than [`RECORDS`] are not repeated.
    pub fn of(cells: impl IntoIterator<Item = Merged>) -> Self {
        let mut next: Vec<Merged> = cells.into_iter().take(RECORDS).collect();
        next.sort_by_key(|cell| Reverse(cell.first_row));
        MergedRows { next, open: BTreeMap::new() }
    }

    /// Starts a cell with this text.
    pub fn start(&mut self, column: usize, last_row: usize, text: &str) {
        self.open.remove(&column);
        if column < COLUMNS && text.len() <= MAX_BYTES && self.open.len() < MAX_COLUMNS {
            self.open.insert(column, (last_row, text.to_owned()));
        }
    }

    /// Adds the texts of merged cells to a row before its end, unless it is blank. Rows have rising numbers.
    pub fn fill(&mut self, row: usize, rows: &mut Rows) {
        self.open.retain(|_, (last_row, _)| row <= *last_row);
        for (column, (_, text)) in &self.open {
            rows.add_if_none(*column, text);
        }
        let mut started = 0;
        while let Some(cell) = self.next.pop_if(|cell| cell.first_row <= row) {
            if cell.first_row == row && started < MAX_COLUMNS {
                started += 1;
                let text = rows.in_column(cell.column).unwrap_or_default().to_owned();
                self.start(cell.column, cell.last_row, &text);
            }
        }
    }
}
