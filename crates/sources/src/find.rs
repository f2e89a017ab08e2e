//! Finds the files to read under the paths given by a user: walks folders and reports what is skipped.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Cause, Kind, SourceError};

/// The contents of the given paths.
#[derive(Debug, Default)]
pub struct Found {
    /// The files to read: in the order given, within a folder sorted by name.
    pub files: Vec<PathBuf>,
    /// The other entries of the folders.
    pub skipped: Vec<Skipped>,
    /// Given paths that cannot be read, and folders that cannot be listed.
    pub errors: Vec<SourceError>,
}

/// An entry of a folder that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// Why it is not read.
    pub reason: SkipReason,
}

/// Why an entry of a folder is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its name starts with a dot.
    Hidden,
    /// Its extension is that of no supported file type.
    UnknownKind,
    /// A device, a socket or a pipe.
    NotAFile,
    /// The same file or folder was found before: given twice, or a link.
    Repeated,
    /// A symbolic link to something outside the folder that was given.
    LinkOutside,
}

/// Lists the files to read under `paths`, walking folders, each file and folder once.
///
/// A symbolic link within a folder is followed only if its target is inside that folder: reading a folder must not read
/// files that another user linked into it. A link that is itself one of `paths` is followed.
///
/// A given path that does not exist or is of no supported type becomes an error entry.
pub fn find(paths: &[PathBuf]) -> Found {
    let mut search = Search::default();
    for path in paths {
        search.given(path);
    }
    search.found
}

#[derive(Default)]
struct Search {
    found: Found,
    /// Canonical paths of the files and folders already found; this also ends loops of links.
    reached: HashSet<PathBuf>,
    /// The canonical path of the given folder that is being walked.
    root: PathBuf,
}

impl Search {
    fn given(&mut self, path: &Path) {
        match fs::metadata(path) {
            Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            Ok(meta) if meta.is_dir() => match fs::canonicalize(path) {
                Ok(root) => {
                    self.root = root;
                    self.folder(path);
                }
                Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            },
            Ok(meta) if !meta.is_file() => self.found.errors.push(Cause::NotAFile.at(path)),
            Ok(_) if Kind::of(path).is_none() => self.found.errors.push(Cause::UnknownKind.at(path)),
            Ok(_) => self.file(path),
        }
    }

    fn folder(&mut self, path: &Path) {
        if !self.reach(path) {
            return;
        }
        let entries = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut entries: Vec<PathBuf> = match entries {
            Ok(entries) => entries,
            Err(error) => return self.found.errors.push(Cause::Io(error).at(path)),
        };
        entries.sort();
        for entry in entries {
            self.entry(&entry);
        }
    }

    fn entry(&mut self, path: &Path) {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden {
            return self.skip(path, SkipReason::Hidden);
        }
        if self.leaves(path) {
            return self.skip(path, SkipReason::LinkOutside);
        }
        match fs::metadata(path) {
            Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            Ok(meta) if meta.is_dir() => self.folder(path),
            Ok(_) if Kind::of(path).is_none() => self.skip(path, SkipReason::UnknownKind),
            Ok(meta) if !meta.is_file() => self.skip(path, SkipReason::NotAFile),
            Ok(_) => self.file(path),
        }
    }

    fn file(&mut self, path: &Path) {
        if self.reach(path) {
            self.found.files.push(path.to_owned());
        }
    }

    /// Whether an entry is a link to something outside the given folder. A link without a target is reported as an error
    /// later.
    fn leaves(&self, path: &Path) -> bool {
        let is_link = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
        is_link && fs::canonicalize(path).is_ok_and(|target| !target.starts_with(&self.root))
    }

    /// Whether `path` was not found before.
    fn reach(&mut self, path: &Path) -> bool {
        match fs::canonicalize(path).map(|place| self.reached.insert(place)) {
            Ok(true) => return true,
            Ok(false) => self.skip(path, SkipReason::Repeated),
            Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
        }
        false
    }

    fn skip(&mut self, path: &Path, reason: SkipReason) {
        self.found.skipped.push(Skipped { path: path.to_owned(), reason });
    }
}
