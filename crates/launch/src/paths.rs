//! Paths as they are stored and as they are printed.

use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use crate::failure::refusal;
use crate::output::printable;

/// The absolute form of a path, without `..`, so that a file has one name in every working directory.
pub fn absolute(path: &Path) -> PathBuf {
    let canonical = path.components().any(|part| part == Component::ParentDir).then(|| canonical(path));
    canonical.flatten().or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

/// The canonical form of a path whose last parts may be missing.
fn canonical(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| Some(canonical(path.parent()?)?.join(path.file_name()?)))
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
/// If there is none, or the path is that of a folder.
pub fn check_folder_of(file: &Path) -> Result<()> {
    if file.is_dir() {
        return Err(refusal(format!("{} is a folder", file.display()), "name a file in it"));
    }
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(refusal(format!("there is no folder {}", folder.display()), "make it, or choose another place"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_name_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        let typed = |path: &str| absolute(&folder.path().join(path));
        std::fs::write(folder.path().join("a.md"), "text").unwrap();
        let there = typed("docs/../a.md");
        std::fs::remove_file(folder.path().join("a.md")).unwrap();
        assert_eq!(typed("docs/../a.md"), there);
        assert_eq!(typed("docs/../gone/a.md"), there.with_file_name("gone").join("a.md"));
    }
}
