//! Files beside the database that others derive from it, such as saved keys and values: they may hold words of documents,
//! so they go when a document goes, and nobody relies on them.

use std::path::PathBuf;
use std::{fs, io};

use crate::{Corpus, Error, Result, Writer};

impl Corpus {
    /// Where a derived file of this name is kept. Whoever writes it does so aside and renames it.
    pub fn cache_file(&self, name: &str) -> PathBuf {
        self.cache().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.folder().join("cache")
    }
}

impl Writer {
    /// Deletes all derived files.
    pub(crate) fn clear_cache(&self) -> Result<()> {
        match fs::remove_dir_all(self.cache()) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::io(&self.cache(), source)),
            _ => Ok(()),
        }
    }
}
