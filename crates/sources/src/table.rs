//! Tables as text: `.csv` (separated by commas, semicolons or tabs, or by what its first line `sep=|` names) and
//! `.tsv`, read as a stream.

use std::mem;
use std::path::Path;

use csv_core::{ReadFieldResult, ReaderBuilder};

use crate::limit::CELL_BYTES;
use crate::rows::Rows;
use crate::{Cause, Kind, Limit, Source, TextFile};

/// A `.csv` or `.tsv` file.
pub(crate) fn source(name: &str, path: &Path) -> Result<Source, Cause> {
    let file = TextFile::open(path, Kind::Table)?;
    let mut pieces = file.pieces()?.peekable();
    let start = match pieces.peek() {
        Some(Ok(piece)) => piece.as_str(),
        _ => "",
    };
    let is_tsv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
    let (separator, mut declaration_bytes) = match declared(start) {
        Some(declared) => declared,
        None if is_tsv && start.contains('\t') => (b'\t', 0),
        None => (separator(start), 0),
    };
    let mut table = Table::new(separator);
    for piece in pieces {
        table.add(&piece?.as_bytes()[mem::take(&mut declaration_bytes)..], false)?;
    }
    table.add(&[], true)?;
    let source = Source::whole(name, Kind::Table, None, table.rows.finish())?;
    Ok(Source { encoding: file.encoding(), ..source })
}

/// The separator that the first line of a table names for Excel, `sep=;`, and the length of this line.
fn declared(start: &str) -> Option<(u8, usize)> {
    let line = start.split_inclusive('\n').next()?;
    let name = line.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']).strip_prefix("sep=")?;
    match name.as_bytes() {
        [b'"'] => None,
        [byte] if byte.is_ascii_punctuation() || *byte == b'\t' => Some((*byte, line.len())),
        _ => None,
    }
}

/// The separator that the most lines have equally often outside quotes, whatever title or notes precede the header.
fn separator(start: &str) -> u8 {
    const LINES: usize = 50;
    let bare = |line: &str| line.split('"').step_by(2).collect::<String>();
    let lines: Vec<String> = start.lines().take(LINES).map(bare).collect();
    let alike = |separator: &u8| {
        let count = |line: &String| line.bytes().filter(|byte| byte == separator).count();
        let mut counts: Vec<usize> = lines.iter().map(count).filter(|count| *count > 0).collect();
        counts.sort_unstable();
        counts.chunk_by(|one, next| one == next).map(<[usize]>::len).max().unwrap_or(0)
    };
    // Of equals the last counts: words have commas too, and so do numbers in many languages.
    let used = [b',', b';', b'\t'].into_iter().filter(|separator| alike(separator) > 0);
    used.max_by_key(alike).unwrap_or(b',')
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
