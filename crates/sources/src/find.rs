//! From the paths a user named to the files to read: folders are walked, and what is passed over is said.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Cause, Kind, SourceError};

/// What lies under the named paths.
#[derive(Debug, Default)]
pub struct Found {
    /// The files to read: in the order named, within a folder sorted by name.
    pub files: Vec<PathBuf>,
    /// What the folders hold besides.
    pub skipped: Vec<Skipped>,
    /// Paths that the user named and that cannot be read, and folders that would not open.
    pub errors: Vec<SourceError>,
}

/// Something in a folder that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is not read.
    pub reason: SkipReason,
}

/// Why something in a folder is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its name starts with a dot.
    Hidden,
    /// Its name ends in nothing that we can read.
    UnknownKind,
    /// A device, a socket or a pipe.
    NotAFile,
    /// It was reached before by another way: named twice, or a link.
    Repeated,
}

/// Lists the files to read under `paths`, walking folders and following links, each file and folder once.
///
/// Nothing that was named is dropped: a path that does not exist or is of no known kind becomes an error entry.
pub fn find(paths: &[PathBuf]) -> Found {
    let mut search = Search::default();
    for path in paths {
        search.named(path);
    }
    search.found
}

#[derive(Default)]
struct Search {
    found: Found,
    /// Canonical paths of the files and folders already reached; also what ends a loop of links.
    reached: HashSet<PathBuf>,
}

impl Search {
    fn named(&mut self, path: &Path) {
        match fs::metadata(path) {
            Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            Ok(meta) if meta.is_dir() => self.folder(path),
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

    /// Whether this is the first way that leads to `path`.
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
