//! Comma-separated values with a line of column names (RFC 4180), each record with the line on which it begins.

use std::collections::HashMap;
use std::path::Path;

use crate::data::records::fault;
use crate::{Error, Result};

/// A record: its line, and its values by column.
pub(super) type Row = (usize, HashMap<String, String>);

/// The records of a file.
///
/// # Errors
/// [`Error::Record`] for a record with another number of values than there are columns, or an open quotation.
pub(super) fn read(path: &Path) -> Result<Vec<Row>> {
    let file = std::fs::read_to_string(path).map_err(Error::reading(path))?;
    let mut rows = split(&file).map_err(|line| fault(path, line, "", "a quotation has no end"))?.into_iter();
    let Some((_, columns)) = rows.next() else {
        return Err(Error::NotTheData { path: path.to_owned(), problem: "there are no records in it".into() });
    };
    let row = |(line, values): (usize, Vec<String>)| {
        if values.len() != columns.len() {
            let problem = format!("{} values for {} columns", values.len(), columns.len());
            return Err(fault(path, line, "", problem));
        }
        Ok((line, columns.iter().cloned().zip(values).collect()))
    };
    rows.map(row).collect()
}

/// The value of a column.
///
/// # Errors
/// [`Error::Record`] if there is no such column.
pub(super) fn field<'a>(path: &Path, row: &'a Row, name: &str) -> Result<&'a str> {
    row.1.get(name).map(String::as_str).ok_or_else(|| fault(path, row.0, name, "there is no such column"))
}

/// Lines of values; the line where a quotation begins that has no end.
fn split(file: &str) -> std::result::Result<Vec<(usize, Vec<String>)>, usize> {
    let (mut rows, mut row, mut value) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut start, mut quoted) = (1, 1, None);
    let mut chars = file.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match (c, quoted) {
            ('"', Some(_)) if chars.peek() == Some(&'"') => value.extend(chars.next()),
            ('"', Some(_)) => quoted = None,
            ('"', None) if value.is_empty() => quoted = Some(line),
            (',', None) => row.push(std::mem::take(&mut value)),
            ('\r', None) => {}
            ('\n', None) => {
                row.push(std::mem::take(&mut value));
                rows.push((start, std::mem::take(&mut row)));
                start = line;
            }
            _ => value.push(c),
        }
    }
    if let Some(line) = quoted {
        return Err(line);
    }
    if !value.is_empty() || !row.is_empty() {
        row.push(value);
        rows.push((start, row));
    }
    rows.retain(|(_, row)| *row != [""]);
    Ok(rows)
}
