//! Snapshots whose digest has been checked, so that not every question to a corpus checks it again.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use models::ModelError;
use scheduler::Namespace;

use super::{Saved, SnapshotError};

/// The checked files with their versions.
#[derive(Default)]
pub(crate) struct CheckedSnapshots(Mutex<HashMap<PathBuf, Version>>);

/// Files are replaced, never modified.
type Version = (Option<SystemTime>, u64);

impl CheckedSnapshots {
    /// The file, if it exists; `identity` is computed only then. It is closed after use, since it may have to be deleted
    /// with its documents.
    ///
    /// # Errors
    /// As [`Saved::open`]; those of `identity`.
    pub fn open(
        &self,
        path: &Path,
        identity: impl FnOnce() -> Result<String, ModelError>,
        namespace: Namespace,
        page_bytes: usize,
    ) -> Result<Option<Saved>, SnapshotError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(found) = fs::metadata(path) else { return Ok(None) };
        let version = (found.modified().ok(), found.len());
        let whole = known.remove(path) == Some(version);
        let saved = Saved::open(path, &identity()?, namespace, page_bytes, whole)?;
        known.insert(path.to_owned(), version);
        Ok(Some(saved))
    }
}
