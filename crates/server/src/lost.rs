//! What corpora lose: documents that were removed or replaced, and the state of a corpus, which every loss changes.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use store::{Corpus, Document};

use crate::error::Result;

/// The file of [`CorpusState::lost`].
pub(crate) const LOST: &str = "lost";

/// A document as it was before a change. Also one that is gone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Gone {
    pub path: String,
    pub kind: String,
    pub digest: String,
    /// When it was added, in seconds since 1970: an answer since then could know it.
    pub since: u64,
}

impl Gone {
    pub fn of(document: &Document) -> Gone {
        let Document { path, kind, digest, created_seconds, .. } = document;
        let since = u64::try_from(*created_seconds).unwrap_or_default();
        Gone { path: path.clone(), kind: kind.clone(), digest: digest.to_string(), since }
    }
}

/// Changes when a text of a corpus, or the corpus, is removed or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CorpusState {
    exists: bool,
    /// When its folder was created, where the file system knows that.
    created: Option<SystemTime>,
    /// The random content of a file that every removal replaces.
    lost: Vec<u8>,
}

impl CorpusState {
    /// That of the corpus in this folder.
    pub fn of_folder(folder: &Path) -> Result<CorpusState> {
        let about = if_there(fs::metadata(folder))?;
        let lost = if_there(fs::read(folder.join(LOST)))?.unwrap_or_default();
        let created = about.as_ref().and_then(|about| about.created().ok());
        Ok(CorpusState { exists: about.is_some(), created, lost })
    }

    /// That of an open corpus.
    pub fn of(corpus: &Corpus) -> Result<CorpusState> {
        let file = corpus.file(LOST);
        CorpusState::of_folder(file.parent().unwrap_or(&file))
    }
}

/// `None` for what is not there.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}
