//! Tables as text: `.csv` (separated by commas, semicolons or tabs) and `.tsv`, read as a stream.

use std::path::Path;

use csv_core::{ReadFieldResult, ReaderBuilder};

use crate::limit::CELL_BYTES;
use crate::rows::Rows;
use crate::{Cause, Kind, Limit, Source, TextFile};

/// A `.csv` or `.tsv` file.
pub(crate) fn source(name: &str, path: &Path) -> Result<Source, Cause> {
    let file = TextFile::open(path, Kind::Table)?;
    let mut pieces = file.pieces()?.peekable();
    let first_line = match pieces.peek() {
        Some(Ok(piece)) => piece.lines().next().unwrap_or_default(),
        _ => "",
    };
    let mut table = Table::new(separator(first_line));
    for piece in pieces {
        table.add(piece?.as_bytes(), false)?;
    }
    table.add(&[], true)?;
    let source = Source::whole(name, Kind::Table, None, table.rows.finish())?;
    Ok(Source { encoding: file.encoding(), ..source })
}

/// The separator that a line has most often outside quotes.
fn separator(line: &str) -> u8 {
    let bare: String = line.split('"').step_by(2).collect();
    let count = |separator: &u8| bare.bytes().filter(|byte| byte == separator).count();
    // Of equals the last counts.
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',')
}

struct Table {
    reader: csv_core::Reader,
    /// The cell that is being read, and the number of its column.
    cell: Vec<u8>,
    column: usize,
    rows: Rows,
}

impl Table {
    fn new(separator: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(separator).build();
        Table { reader, cell: Vec::new(), column: 0, rows: Rows::default() }
    }

    fn add(&mut self, mut input: &[u8], is_end: bool) -> Result<(), Cause> {
        let mut output = [0; 4096];
        // For the reader an empty input is the end of the table.
        while !input.is_empty() || is_end {
            let (result, read, written) = self.reader.read_field(input, &mut output);
            input = &input[read..];
            self.cell.extend_from_slice(&output[..written]);
            if self.cell.len() > CELL_BYTES {
                return Err(Limit::CellBytes(CELL_BYTES).into());
            }
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::End => break,
                ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => self.end_cell(record_end)?,
            }
        }
        Ok(())
    }

    fn end_cell(&mut self, is_last: bool) -> Result<(), Cause> {
        // The text is UTF-8 and separators are ASCII.
        let cell = String::from_utf8_lossy(&self.cell);
        self.rows.cell(self.column, &cell)?;
        self.cell.clear();
        self.column += 1;
        if is_last {
            self.column = 0;
            self.rows.end_row()?;
        }
        Ok(())
    }
}
