//! Rows of a table as lines of text: `name: Ann | city: Bern`, so that each row can be understood without the others.
//!
//! The header is the first row with two cells or more, if the only numbers in it are successive years; without a header a row
//! is `Ann | Bern`. Rows before the header, such as a title, are lines too. White space within a cell becomes one space.

use std::collections::BTreeMap;
use std::mem;

use crate::Limit;
use crate::limit::{CELL_BYTES, COLUMNS, TEXT_BYTES};

/// A table under construction.
#[derive(Default)]
pub(crate) struct Rows {
    text: String,
    /// The cells of the row that is being read, each with the number of its column.
    row: Vec<(usize, String)>,
    /// The length of these cells.
    row_bytes: usize,
    /// The numbers in this row that are shown with words, such as units.
    measures: Vec<f64>,
    /// `None` until a row with two cells was seen; then the names of columns, which may be none.
    header: Option<BTreeMap<usize, String>>,
    /// Whether a row followed the header.
    is_followed: bool,
}

impl Rows {
    /// Adds a cell to the current row, unless it is empty.
    ///
    /// # Errors
    /// [`Limit::Columns`], [`Limit::CellBytes`], [`Limit::TextBytes`].
    pub fn cell(&mut self, column: usize, cell: &str) -> Result<(), Limit> {
        // Cells of a damaged workbook may share a column.
        if column >= COLUMNS || self.row.len() == COLUMNS {
            return Err(Limit::Columns(COLUMNS));
        }
        if cell.len() > CELL_BYTES {
            return Err(Limit::CellBytes(CELL_BYTES));
        }
        let cell = one_line(cell);
        if cell.is_empty() {
            return Ok(());
        }
        self.row_bytes += cell.len();
        if self.text.len() + self.row_bytes > TEXT_BYTES {
            return Err(Limit::TextBytes(TEXT_BYTES));
        }
        self.row.push((column, cell));
        Ok(())
    }

    /// Adds a cell as [`Self::cell`] does, which shows this number if it holds one.
    ///
    /// # Errors
    /// As [`Self::cell`].
    pub fn shown(&mut self, column: usize, cell: &str, number: Option<f64>) -> Result<(), Limit> {
        self.cell(column, cell)?;
        self.measures.extend(number.filter(|_| cell.contains(char::is_alphabetic)));
        Ok(())
    }

    /// The cell of the current row in a column.
    pub fn in_column(&self, column: usize) -> Option<&str> {
        self.row.iter().find(|(place, _)| *place == column).map(|(_, cell)| cell.as_str())
    }

    /// Adds a short cell in its place, unless the current row is blank or has a cell in its column.
    pub fn add_if_none(&mut self, column: usize, cell: &str) {
        let place = self.row.iter().position(|(place, _)| *place >= column).unwrap_or(self.row.len());
        let is_there = self.row.get(place).is_some_and(|(place, _)| *place == column);
        if !self.row.is_empty() && !is_there && !cell.is_empty() {
            self.row_bytes += cell.len();
            self.row.insert(place, (column, cell.to_owned()));
        }
    }

    /// Ends the current row.
    ///
    /// # Errors
    /// [`Limit::TextBytes`].
    pub fn end_row(&mut self) -> Result<(), Limit> {
        let (cells, measures) = (mem::take(&mut self.row), mem::take(&mut self.measures));
        self.row_bytes = 0;
        match &self.header {
            _ if cells.is_empty() => return Ok(()),
            None if cells.len() > 1 => {
                if is_header(&cells) && are_names(&measures, &cells) {
                    self.header = Some(cells.into_iter().collect());
                    return Ok(());
                }
                self.header = Some(BTreeMap::new());
            }
            _ => self.is_followed |= self.header.is_some(),
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

    /// Ends the current row, which is repeated in the table; a header is written once.
    ///
    /// # Errors
    /// [`Limit::TextBytes`].
    pub fn end_rows(&mut self, times: usize) -> Result<(), Limit> {
        let start = self.text.len();
        self.end_row()?;
        let line = self.text.len() - start;
        if line == 0 || times < 2 {
            return Ok(());
        }
        if self.text.len() + (times - 1).saturating_mul(line) > TEXT_BYTES {
            return Err(Limit::TextBytes(TEXT_BYTES));
        }
        let line = self.text[start..].to_owned();
        self.text.reserve((times - 1) * line.len());
        (1..times).for_each(|_| self.text.push_str(&line));
        Ok(())
    }

    /// The lines. A header without rows is a line itself.
    pub fn finish(mut self) -> String {
        if !self.is_followed {
            let names: Vec<String> = self.header.unwrap_or_default().into_values().collect();
            self.text.push_str(&names.join(" | "));
        }
        self.text
    }
}

fn one_line(cell: &str) -> String {
    let mut line = String::new();
    for word in cell.split_whitespace() {
        line.extend([if line.is_empty() { "" } else { " " }, word]);
    }
    line
}

/// Whether cells name columns: words, and years in their order after a word or an empty cell.
fn is_header(cells: &[(usize, String)]) -> bool {
    let numbers: Vec<&String> = cells.iter().map(|(_, cell)| cell).filter(|cell| is_number(cell)).collect();
    if numbers.is_empty() {
        return true;
    }
    let year = |cell: &&String| cell.parse::<i32>().ok().filter(|year| (1800..2200).contains(year));
    let years: Vec<i32> = numbers.iter().filter_map(year).collect();
    let are_successive = years.len() > 1 && years.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let is_after_name = cells.first().is_some_and(|(column, cell)| *column > 0 || !is_number(cell));
    is_after_name && are_successive && years.len() == numbers.len()
}

/// Whether numbers with words can be names of columns, as successive ones after a word or an empty cell are: `Q1`, `Q2`.
fn are_names(measures: &[f64], cells: &[(usize, String)]) -> bool {
    let are_successive = measures.len() > 1 && measures.windows(2).all(|pair| pair[0] + 1.0 == pair[1]);
    let is_after_name = measures.len() < cells.len() || cells.first().is_some_and(|(column, _)| *column > 0);
    measures.is_empty() || are_successive && is_after_name
}

/// Whether a cell is a number as people write them: `-1,234.50`, `12 %`, `CHF 5`.
fn is_number(cell: &str) -> bool {
    let number = cell.split_once(' ').filter(|(sign, _)| is_currency(sign)).map_or(cell, |(_, number)| number);
    let number = number.rsplit_once(' ').filter(|(_, sign)| is_currency(sign)).map_or(number, |(number, _)| number);
    let has_digits = number.contains(|c: char| c.is_ascii_digit());
    has_digits
        && number.chars().all(|c| {
            c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ',' | '\'' | '%' | ' ' | '€' | '$' | '£' | '¥')
        })
}

/// Whether a word is the sign of a currency: `€`, `kr`, `Fr.`, or a code of ISO 4217. It has at most four bytes.
pub(crate) fn is_currency(word: &str) -> bool {
    const SIGNS: [&str; 14] = ["$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₴", "₪", "kr", "zł", "Kč", "Fr."];
    SIGNS.contains(&word) || word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}
