//! Follows the changes of files by listing them again and again, which needs nothing of the system and also works on network
//! drives.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::{Cause, Found, Selection, find_selected};

/// Files under some paths, as they were when they were last reported.
#[derive(Debug)]
pub struct Watch {
    paths: Vec<PathBuf>,
    selection: Selection,
    known: HashMap<PathBuf, Stamp>,
    /// Files that were seen changed once.
    changing: HashMap<PathBuf, Stamp>,
    /// Files that were missing once.
    missing: HashSet<PathBuf>,
}

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

/// What has changed between two looks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New and changed files.
    pub changed: Vec<PathBuf>,
    /// Files that are gone.
    pub removed: Vec<PathBuf>,
}

impl Watch {
    /// Starts with the files as they are now.
    pub fn new(paths: &[PathBuf], selection: Selection) -> Self {
        let mut watch = Watch {
            paths: paths.to_vec(),
            selection,
            known: HashMap::new(),
            changing: HashMap::new(),
            missing: HashSet::new(),
        };
        watch.known = watch.list().0;
        watch
    }

    /// What has changed since. A change counts when two looks after another see the same: a file that is being written,
    /// or that an editor replaces by renaming, is reported once it is complete. A file that cannot be examined now is not
    /// gone.
    pub fn look(&mut self) -> Changes {
        let (files, unreadable) = self.list();
        let is_unreadable = |file: &PathBuf| unreadable.iter().any(|path| file.starts_with(path));
        let is_gone = |file: &&PathBuf| !files.contains_key(*file) && !is_unreadable(file);
        let mut changes = Changes::default();
        for (file, stamp) in &files {
            if self.known.get(file) == Some(stamp) {
                self.changing.remove(file);
            } else if self.changing.insert(file.clone(), *stamp) == Some(*stamp) {
                self.changing.remove(file);
                self.known.insert(file.clone(), *stamp);
                changes.changed.push(file.clone());
            }
        }
        let gone: HashSet<PathBuf> = self.known.keys().filter(is_gone).cloned().collect();
        changes.removed.extend(gone.intersection(&self.missing).cloned());
        self.missing = gone;
        for file in &changes.removed {
            self.known.remove(file);
            self.missing.remove(file);
        }
        self.changing.retain(|file, _| files.contains_key(file));
        changes.changed.sort();
        changes.removed.sort();
        changes
    }

    /// The files, and the paths that are there and cannot be examined.
    fn list(&self) -> (HashMap<PathBuf, Stamp>, Vec<PathBuf>) {
        let Found { files, errors, .. } = find_selected(&self.paths, &self.selection);
        let is_absent =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let is_missing = |cause: &Cause| matches!(cause, Cause::Io(error) if is_absent(error));
        let unreadable = errors.into_iter().filter(|error| !is_missing(&error.cause)).map(|error| error.path).collect();
        let stamp = |file: &PathBuf| {
            let meta = fs::metadata(file).ok()?;
            Some(Stamp { modified: meta.modified().ok(), bytes: meta.len() })
        };
        (files.into_iter().filter_map(|file| Some((file.clone(), stamp(&file)?))).collect(), unreadable)
    }
}
