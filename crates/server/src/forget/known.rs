//! What other clients of a shared corpus have removed: the documents that it had when it was last opened here, of which a
//! list is kept, and has no more. The list is replaced after what is gone was forgotten, so an interruption loses nothing.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Corpus, private};

use super::{Forget, Gone, if_there};
use crate::error::Result;

/// The id of a shared corpus and the number of its last change.
pub(super) type Version = (String, i64);

/// A shared corpus when it was last opened here.
#[derive(Serialize, Deserialize)]
struct Known {
    version: Version,
    documents: Vec<Gone>,
}

impl Known {
    /// Whether it is of another corpus of this name, or of an earlier version.
    fn is_before(&self, (id, number): &Version) -> bool {
        let (known_id, known_number) = &self.version;
        known_id != id || known_number < number
    }
}

impl Forget {
    /// Forgets what may quote documents of a shared corpus that other clients have removed or replaced since it was last
    /// opened here.
    pub(crate) fn catch_up(&self, corpus: &Corpus) -> Result<()> {
        let Some(version) = corpus.shared_version()? else { return Ok(()) };
        let name = corpus.name().to_string();
        if self.caught_up().get(&name) == Some(&version) {
            return Ok(());
        }
        let _one = self.lock_known()?;
        let known = self.known(&name)?;
        // A reader of an earlier version may be slower than one of a later version.
        if known.as_ref().is_none_or(|known| known.is_before(&version)) {
            if let Some(Known { documents, .. }) = known {
                self.forget_documents(corpus, documents)?;
            }
            self.write_known(corpus, &version)?;
        }
        self.caught_up().insert(name, version);
        Ok(())
    }

    /// Forgets what may quote a corpus that is not there: true if it was shared and another client has removed it.
    pub(crate) fn catch_up_removed(&self, corpus: &str) -> Result<bool> {
        let was_known = self.known_file(corpus).exists();
        if was_known {
            self.forget_corpus(corpus)?;
        }
        Ok(was_known)
    }

    /// Lists the documents of a shared corpus after a change of this process, which has forgotten what is gone.
    pub(super) fn note(&self, corpus: &Corpus) -> Result<()> {
        let Some(version) = corpus.shared_version()? else { return Ok(()) };
        let _one = self.lock_known()?;
        self.write_known(corpus, &version)?;
        self.caught_up().insert(corpus.name().to_string(), version);
        Ok(())
    }

    /// Deletes the list of a corpus that was removed.
    pub(super) fn forget_known(&self, corpus: &str) -> Result<()> {
        self.caught_up().remove(corpus);
        if_there(fs::remove_file(self.known_file(corpus)))?;
        Ok(())
    }

    fn known(&self, corpus: &str) -> Result<Option<Known>> {
        let Some(bytes) = if_there(fs::read(self.known_file(corpus)))? else { return Ok(None) };
        let known = serde_json::from_slice::<Known>(&bytes);
        Ok(known.inspect_err(|error| tracing::warn!(%error, corpus, "cannot read what was known of a corpus")).ok())
    }

    fn write_known(&self, corpus: &Corpus, version: &Version) -> Result<()> {
        let documents = corpus.documents()?.iter().map(Gone::of).collect();
        let known = Known { version: version.clone(), documents };
        Ok(private::replace(&self.known_file(&corpus.name().to_string()), json!(known).to_string())?)
    }

    fn known_file(&self, corpus: &str) -> PathBuf {
        self.journals().join(format!("{corpus}.known"))
    }

    fn lock_known(&self) -> Result<File> {
        private::folder(&self.journals())?;
        let lock = private::create(&self.journals().join("known.lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn caught_up(&self) -> MutexGuard<'_, HashMap<String, Version>> {
        self.caught_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
