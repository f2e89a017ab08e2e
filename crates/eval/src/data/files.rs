//! Resolves a path given by the user to the file of a data set.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The file itself, or the one in a folder: the first in order of names with the first of `words` that any has.
///
/// # Errors
/// [`Error::NotTheData`] for a folder without such a file; [`Error::Read`] for a path that does not exist.
pub(crate) fn find(path: &Path, words: &[&str]) -> Result<PathBuf> {
    if fs::metadata(path).map_err(Error::reading(path))?.is_file() {
        return Ok(path.to_owned());
    }
    let files = json_files(path)?;
    let named = |word: &&str| files.iter().find(|file| name(file).contains(*word));
    words.iter().find_map(named).cloned().ok_or_else(|| {
        let problem = format!("no .json or .jsonl file in it whose name has `{}`", words.join("` or `"));
        Error::NotTheData { path: path.to_owned(), problem }
    })
}

/// The `.json` and `.jsonl` files of a folder, or the file itself, in order of names.
///
/// # Errors
/// [`Error::Read`].
pub(crate) fn json_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(Error::reading(path))? {
        let file = entry.map_err(Error::reading(path))?.path();
        if file.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The name of a file without its folder.
pub(crate) fn name(file: &Path) -> String {
    file.file_name().unwrap_or(OsStr::new("")).to_string_lossy().into_owned()
}
