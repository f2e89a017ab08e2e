//! Paths as they are stored and as they are printed.

use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use crate::failure::refusal;
use crate::output::printable;

/// The absolute form of a path, without `..`, so that a file has one name in every working directory.
pub fn absolute(path: &Path) -> PathBuf {
    let canonical = path.components().any(|part| part == Component::ParentDir).then(|| path.canonicalize().ok());
    canonical.flatten().or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

/// A path for output: relative to the working directory if it is below it, in one line.
pub fn shown(path: impl AsRef<Path>) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.as_ref();
    printable(path.strip_prefix(here).unwrap_or(path).display())
}

/// Checks that a new file has a folder.
///
/// # Errors
/// If there is none.
pub fn check_folder_of(file: &Path) -> Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(refusal(format!("there is no folder {}", folder.display()), "make it, or choose another place"))
        }
        _ => Ok(()),
    }
}
