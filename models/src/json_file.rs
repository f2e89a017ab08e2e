//! JSON files of a checkpoint's folder.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{ModelError, Result};
use crate::files;

/// # Errors
/// If there is no such file.
pub(crate) fn required(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    let missing = || ModelError::NotACheckpoint { path: folder.to_owned(), missing: name.to_owned() };
    files::is_file(&path).then_some(path).ok_or_else(missing)
}

/// `None` if there is no such file.
pub(crate) fn optional_json(folder: &Path, name: &str) -> Result<Option<Value>> {
    files::is_file(&folder.join(name)).then(|| read_json(folder, name)).transpose()
}

/// # Errors
/// If the file is missing or no JSON.
pub(crate) fn read_json(folder: &Path, name: &str) -> Result<Value> {
    let path = required(folder, name)?;
    serde_json::from_slice(&files::read(&path)?)
        .map_err(|error| ModelError::Damaged { path, reason: error.to_string() })
}
