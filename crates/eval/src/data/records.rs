//! Records of a JSON file that know their line, so that an error can name line and field.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::{Error, Result};

/// The records of a file, in its order.
pub(crate) struct Records<T> {
    path: PathBuf,
    records: Vec<Record<T>>,
}

/// One record.
pub(crate) struct Record<T> {
    /// On which it starts, from 1.
    line: usize,
    pub value: T,
}

impl<T: DeserializeOwned> Records<T> {
    /// Reads a file that holds one array of records, or records one after another (JSON lines).
    ///
    /// # Errors
    /// [`Error::Record`] for invalid JSON or a missing field of `T`; [`Error::NotTheData`] for a file without records.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::reading(path))?;
        let file = std::str::from_utf8(&bytes).map_err(|error| {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            fault(path, 1 + good.matches('\n').count(), "", "it is not UTF-8")
        })?;
        let file = file.trim_start_matches('\u{feff}');
        let mut records = Vec::new();
        let (mut line, mut start) = (1, 0);
        for raw in raw_records(path, file)? {
            let at = raw.as_ptr().addr() - file.as_ptr().addr();
            line += file[start..at].matches('\n').count();
            start = at;
            records.push(Record { line, value: parse(path, line, raw)? });
        }
        if records.is_empty() {
            return Err(Error::NotTheData { path: path.to_owned(), problem: "there are no records in it".into() });
        }
        Ok(Records { path: path.to_owned(), records })
    }
}

impl<T> Records<T> {
    /// The records in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Record<T>> {
        self.records.iter()
    }

    /// The values of the records.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.records.into_iter().map(|record| record.value)
    }

    /// The error that a field of a record has some problem.
    pub fn fault(&self, record: &Record<T>, field: &str, problem: impl Into<String>) -> Error {
        fault(&self.path, record.line, field, problem)
    }
}

/// The error that a field of the record on a line has some problem.
pub(crate) fn fault(path: &Path, line: usize, field: &str, problem: impl Into<String>) -> Error {
    Error::Record { path: path.to_owned(), line, field: field.to_owned(), problem: problem.into() }
}

fn raw_records<'a>(path: &Path, file: &'a str) -> Result<Vec<&'a str>> {
    let damaged = |error: serde_json::Error| fault(path, error.line().max(1), "", words(&error));
    let values = Deserializer::from_str(file).into_iter::<&RawValue>();
    let mut values = values.collect::<std::result::Result<Vec<_>, _>>().map_err(damaged)?;
    if let [only] = values[..]
        && only.get().starts_with('[')
    {
        values = serde_json::from_str(only.get()).map_err(damaged)?;
    }
    Ok(values.into_iter().map(RawValue::get).collect())
}

fn parse<T: for<'de> Deserialize<'de>>(path: &Path, line: usize, raw: &str) -> Result<T> {
    serde_path_to_error::deserialize(&mut Deserializer::from_str(raw)).map_err(|error| {
        let field = error.path().to_string();
        let inner = error.into_inner();
        // The line of the field, or where a field is missing, of the object's end.
        let line = line + inner.line().max(1) - 1;
        fault(path, line, if field == "." { "" } else { &field }, words(&inner))
    })
}

/// serde's message, without the position in the record.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words).to_owned()
}
