//! The names of users in Slack's exports, from the file `users.json` beside the folders of the channels.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::limit::{JSON_BYTES, SLACK_NAME_BYTES};
use crate::records::{Record, records};
use crate::{Cause, Kind, encoding};

/// Names of users by their ids.
pub(super) type Names = HashMap<String, String>;

/// Finds the names of users for the messages of Slack's exports, which have only their ids.
///
/// Only files below the folders that the user has named are read. Where a single channel's folder was named, `users.json` is outside
/// it, so that the messages keep the ids. Clones share what was read.
#[derive(Clone, Debug, Default)]
pub struct SlackUsers {
    /// Canonical paths.
    folders: Vec<PathBuf>,
    /// The export that was used last, by its canonical path.
    last: Arc<Mutex<Option<Export>>>,
}

type Export = (PathBuf, Arc<Names>);

impl SlackUsers {
    /// The names in exports that are these folders or in them. Paths of files are passed over.
    pub fn below(paths: &[PathBuf]) -> Self {
        let folders = paths.iter().filter(|path| path.is_dir()).filter_map(|path| fs::canonicalize(path).ok());
        SlackUsers { folders: folders.collect(), last: Arc::default() }
    }

    /// The names of an export, read once for all its files.
    pub(super) fn of(&self, export: &Path) -> Arc<Names> {
        let is_named = |export: &PathBuf| self.folders.iter().any(|folder| export.starts_with(folder));
        let Some(export) = fs::canonicalize(export).ok().filter(is_named) else { return Arc::default() };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((read, names)) if *read == export => Arc::clone(names),
            _ => {
                let names = Arc::new(names(&export.join("users.json")));
                *last = Some((export, Arc::clone(&names)));
                names
            }
        }
    }
}

/// The names in a file. Without the file, messages keep the ids.
fn names(file: &Path) -> Names {
    let is_file = fs::symlink_metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() <= JSON_BYTES);
    let text = is_file.then(|| fs::read(file).ok()).flatten().and_then(|bytes| encoding::decode_utf8(bytes).ok());
    let text = text.unwrap_or_default();
    let records = records(&text, Kind::Conversation).unwrap_or_default();
    let user = |user: &Record<'_>| Some((user.text("id").ok()?, name_in(user).ok()??));
    records.iter().filter_map(user).collect()
}

/// The name that a profile shows. A longer one than Slack permits is none.
pub(super) fn name_in(profile: &Record<'_>) -> Result<Option<String>, Cause> {
    let names = [profile.label("real_name")?, profile.label("display_name")?, profile.label("name")?];
    let is_name = |name: &String| !name.trim().is_empty() && name.len() <= SLACK_NAME_BYTES;
    Ok(names.into_iter().flatten().find(is_name))
}
