//! The suggested questions of a corpus: a file beside it, until a document is deleted.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Corpus, private};

use crate::error::Result;

const FILE: &str = "questions.json";

#[derive(Serialize, Deserialize)]
pub(super) struct Suggested {
    /// Documents of the corpus when they were made.
    pub documents: usize,
    pub questions: Value,
}

/// The questions of a corpus; `None` before they were made.
pub(super) fn read(corpus: &Corpus) -> Result<Option<Suggested>> {
    let bytes = match fs::read(corpus.file(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} is damaged: {error}"));
    Ok(Some(serde_json::from_slice(&bytes).map_err(damaged)?))
}

/// Keeps them. The caller holds the lock of the corpus's records.
pub(super) fn write(corpus: &Corpus, suggested: &Suggested) -> Result<()> {
    Ok(private::replace(&corpus.file(FILE), json!(suggested).to_string())?)
}

/// Deletes the questions of a corpus: they may quote a document that is deleted.
pub(crate) fn forget(corpus: &Corpus) -> Result<()> {
    match fs::remove_file(corpus.file(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}
