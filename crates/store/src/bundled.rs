//! Corpora in a bundle: backups named `corpora/<name>.sqlite`, each read into memory once and never changed.

use std::sync::Arc;

use bundle::{Bundle, Entry};

use crate::database::Database;
use crate::{Corpus, CorpusName, Error, Result};

const FOLDER: &str = "corpora/";
const EXTENSION: &str = ".sqlite";

/// The corpora of a bundle.
#[derive(Clone, Debug)]
pub(crate) struct Bundled(pub Arc<Bundle>);

/// The name of a corpus's backup in a bundle.
pub fn bundled_name(corpus: &CorpusName) -> String {
    format!("{FOLDER}{corpus}{EXTENSION}")
}

impl Bundled {
    /// The corpora by name.
    pub fn list(&self) -> impl Iterator<Item = (CorpusName, &Entry)> {
        self.0.below(FOLDER).filter_map(|entry| {
            let name = entry.name.strip_prefix(FOLDER)?.strip_suffix(EXTENSION)?;
            Some((name.parse().ok()?, entry))
        })
    }

    pub fn has(&self, name: &CorpusName) -> bool {
        self.0.find(&bundled_name(name)).is_some()
    }

    /// Opens a corpus for reading; `None` if the bundle has none of this name.
    ///
    /// # Errors
    /// [`Error::Bundle`]; those of opening a corpus.
    pub fn open(&self, name: &CorpusName) -> Result<Option<Corpus>> {
        let Some(entry) = self.0.find(&bundled_name(name)) else { return Ok(None) };
        let path = self.0.path().join(&entry.name);
        let database = Database::open_in_memory(&path, self.0.resident(entry).map_err(Error::Bundle)?)?;
        Corpus::new(name.clone(), path.with_extension(""), database, None, None).map(Some)
    }

    /// The error of what would change a corpus of the bundle.
    pub fn refuse_change(&self, name: &CorpusName) -> Error {
        let path = self.0.path().join(bundled_name(name));
        let copy = "a bundle is not changed; `memlocal corpus backup` and `restore` make a copy that can be";
        Error::NotPermitted { path, source: copy.into() }
    }
}
