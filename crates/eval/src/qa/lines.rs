//! Files of JSON lines that grow during a run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::records::Records;
use crate::{Error, Result};

/// The records of a file; none if there is no file. An unfinished last line is ignored.
///
/// # Errors
/// [`Error::Record`] with line and field.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    if !path.try_exists().map_err(Error::reading(path))? {
        return Ok(Vec::new());
    }
    cut_unfinished(path)?;
    if fs::metadata(path).map_err(Error::reading(path))?.len() == 0 {
        return Ok(Vec::new());
    }
    Ok(Records::read(path)?.into_values().collect())
}

/// Removes the text after the last line break.
fn cut_unfinished(path: &Path) -> Result<()> {
    let bytes = fs::read(path).map_err(Error::reading(path))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < bytes.len() {
        let file = OpenOptions::new().write(true).open(path).map_err(Error::writing(path))?;
        file.set_len(whole as u64).map_err(Error::writing(path))?;
    }
    Ok(())
}

/// Appends a record as one write, so that a killed process leaves at most one line unfinished.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn append(file: &mut File, record: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(record).map_err(io::Error::from);
    let written = line.and_then(|line| file.write_all(format!("{line}\n").as_bytes()));
    written.map_err(|source| Error::Write { path: "the run folder".into(), source })
}
