//! Merged cells of tables: the text of a cell that continues below is repeated in each row, and that of a header in each of its
//! columns, so that a row can be understood without the others and its cells stay in their columns. Long texts are not repeated.

use std::collections::BTreeMap;

use crate::limit::COLUMNS;

/// The longest text that is repeated, in bytes.
const MAX_BYTES: usize = 200;
/// The most columns of a cell, and the most columns with merged cells.
const MAX_COLUMNS: usize = 1000;

/// How a cell is merged with others.
#[derive(Clone, Copy, Default)]
pub(crate) struct Span {
    /// How many columns it has; 0 counts as 1.
    pub columns: usize,
    pub rows: Rows,
    pub is_header: bool,
}

/// The rows of a cell.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Rows {
    #[default]
    One,
    /// This number of rows; those below the first lack the cell.
    Lacking(usize),
    /// Its own row and those below in which a cell in its place is [`Rows::Continued`].
    Marked,
    /// The row of a cell that continues the one above, or else the one before.
    Continued,
    /// The row of a cell that continues the one before.
    Covered,
}

/// A cell of the row that is being read.
pub(crate) struct Cell {
    pub text: String,
    pub span: Span,
}

/// The merged cells of a table.
#[derive(Default)]
pub(crate) struct MergedCells {
    /// The number of the row.
    row: usize,
    /// Those that rows lack, by their columns.
    lacking: BTreeMap<usize, Lacking>,
    /// The texts of those that are marked, by their columns.
    marked: BTreeMap<usize, String>,
}

struct Lacking {
    text: String,
    columns: usize,
    /// The number of its last row.
    last: usize,
}

impl MergedCells {
    /// Takes a row that is not written as one.
    pub fn pass_row(&mut self, cells: Vec<Cell>) {
        if self.lacking.is_empty() {
            drop(self.row(cells));
        } else {
            self.row += 1;
        }
    }

    /// The texts of the next row, of which there are more than [`COLUMNS`] if it has too many.
    pub fn row(&mut self, cells: Vec<Cell>) -> Vec<String> {
        self.row += 1;
        let row = self.row;
        self.lacking.retain(|_, cell| row <= cell.last);
        let has_others = cells.iter().filter(|cell| !cell.text.is_empty()).count() > 1;
        let (mut texts, mut column) = (Vec::new(), 0);
        // The text of a header cell, which the cells after it may continue.
        let mut header = None;
        for Cell { text, span } in cells {
            while let Some(above) = self.lacking.get(&column) {
                texts.push(above.text.clone());
                column += above.columns;
            }
            let columns = span.columns.clamp(1, MAX_COLUMNS);
            let above = self.marked.get(&column).filter(|_| span.rows == Rows::Continued);
            if matches!(span.rows, Rows::Continued | Rows::Covered) && text.is_empty() {
                texts.extend(above.or(header.as_ref()).cloned());
            } else {
                let short = if text.len() <= MAX_BYTES && !text.contains('\n') { text.as_str() } else { "" };
                header = (span.is_header && has_others && !short.is_empty()).then(|| short.to_owned());
                self.keep(column, columns, span.rows, short);
                texts.push(text);
                texts.extend(header.iter().cycle().take(columns - 1).cloned());
            }
            column += columns;
            if texts.len() > COLUMNS {
                return texts;
            }
        }
        texts.extend(self.lacking.range(column..).map(|(_, above)| above.text.clone()));
        texts
    }

    /// Keeps the text of a cell for the rows below.
    fn keep(&mut self, column: usize, columns: usize, rows: Rows, text: &str) {
        self.marked.remove(&column);
        match rows {
            Rows::Lacking(rows) if rows > 1 && self.lacking.len() < MAX_COLUMNS => {
                let last = self.row.saturating_add(rows - 1);
                self.lacking.insert(column, Lacking { text: text.to_owned(), columns, last });
            }
            Rows::Marked if self.marked.len() < MAX_COLUMNS => drop(self.marked.insert(column, text.to_owned())),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str, columns: usize, rows: Rows) -> Cell {
        Cell { text: text.to_owned(), span: Span { columns, rows, is_header: false } }
    }

    fn check(table: &mut MergedCells, cells: Vec<Cell>, expect: &str) {
        assert_eq!(table.row(cells).join("|"), expect);
    }

    #[test]
    fn cells_that_rows_lack_are_in_their_columns() {
        let plain = |text: &str| cell(text, 1, Rows::One);
        let mut table = MergedCells::default();
        check(&mut table, vec![cell("a", 1, Rows::Lacking(3)), plain("b"), cell("c", 2, Rows::Lacking(2))], "a|b|c");
        check(&mut table, vec![plain("d")], "a|d|c");
        check(&mut table, vec![plain("e"), plain("f"), plain("g")], "a|e|f|g");
        check(&mut table, vec![plain("h")], "h");
        let mut table = MergedCells::default();
        check(&mut table, vec![cell("a", 1, Rows::Lacking(3)), plain("b")], "a|b");
        table.pass_row(Vec::new());
        check(&mut table, vec![plain("c")], "a|c");
        check(&mut table, vec![plain("d")], "d");
    }

    #[test]
    fn marked_cells_are_continued_until_another_is_in_their_place() {
        let mut table = MergedCells::default();
        let continued = |columns| cell("", columns, Rows::Continued);
        check(&mut table, vec![cell("a", 2, Rows::Marked), cell("b", 1, Rows::One)], "a|b");
        check(&mut table, vec![continued(2), cell("c", 1, Rows::One)], "a|c");
        table.pass_row(vec![continued(2), cell("", 1, Rows::One)]);
        check(&mut table, vec![continued(1), continued(1), cell("d", 1, Rows::One)], "a|d");
        // A row that is not written ends it too.
        table.pass_row(vec![cell("", 2, Rows::Marked), cell("", 1, Rows::One)]);
        check(&mut table, vec![continued(2), cell("e", 1, Rows::One)], "|e");
        check(&mut table, vec![cell("f", 1, Rows::One), cell("g", 1, Rows::Marked)], "f|g");
        check(&mut table, vec![cell("h", 1, Rows::One), cell("", 1, Rows::Covered)], "h");
        check(&mut table, vec![cell("own", 1, Rows::Continued)], "own");
    }

    #[test]
    fn long_texts_are_not_repeated() {
        let long = "x".repeat(MAX_BYTES + 1);
        for text in [long.as_str(), "two\nlines"] {
            let mut table = MergedCells::default();
            check(&mut table, vec![cell(text, 1, Rows::Lacking(9)), cell("a", 1, Rows::One)], &format!("{text}|a"));
            check(&mut table, vec![cell("b", 1, Rows::One)], "|b");
        }
    }

    #[test]
    fn a_header_is_repeated_in_its_columns_unless_it_is_alone() {
        let header = |text: &str, columns| {
            let span = Span { columns, rows: Rows::One, is_header: true };
            Cell { text: text.to_owned(), span }
        };
        let row = |cells: Vec<Cell>| MergedCells::default().row(cells);
        assert_eq!(row(vec![header("a", 2), header("b", 1)]), ["a", "a", "b"]);
        assert_eq!(row(vec![header("a", 1), cell("", 1, Rows::Continued), header("b", 1)]), ["a", "a", "b"]);
        assert_eq!(row(vec![header("a", 3)]), ["a"]);
        assert_eq!(row(vec![cell("a", 2, Rows::One), cell("", 1, Rows::Continued), header("b", 1)]), ["a", "b"]);
        assert!(row((0..100).map(|_| header("a", usize::MAX)).collect()).len() > COLUMNS);
    }
}
