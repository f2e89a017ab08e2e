//! Cache files beside the database that are derived from it, such as a saved KV cache. They may contain words of
//! documents, so they are deleted when a document is removed; no code requires them to exist.

use std::fs;
use std::path::PathBuf;

use rusqlite::Row;

use crate::database::Database;
use crate::derived_files::{cache, clear};
use crate::digest::Framed;
use crate::{Corpus, Digest, Error, Result, Writer, private};

const DIGEST_BYTES: usize = 32;

impl Corpus {
    /// The content that [`Writer::keep`] stored under a name, if its key digest equals `key` and the file is intact.
    pub fn kept(&self, name: &str, key: &Digest) -> Option<Vec<u8>> {
        let mut file = fs::read(self.cache_file(name)).ok()?;
        let content = (file.len() >= 2 * DIGEST_BYTES).then(|| file.split_off(2 * DIGEST_BYTES))?;
        let (made_from, digest) = file.split_at(DIGEST_BYTES);
        (made_from == key.0 && digest == digest_of(key, &content).0).then_some(content)
    }

    /// The path of the derived file of this name. A writer of the file writes it under a temporary name and renames it.
    pub fn cache_file(&self, name: &str) -> PathBuf {
        self.cache().join(name)
    }

    /// Deletes the cache, what was trained on the documents, and the backups of older versions if a document was added,
    /// replaced or removed since this reader opened the corpus: what it has cached may contain words of a text that has
    /// been removed. A [`Writer`] sees its own changes, so it deletes nothing here.
    ///
    /// # Errors
    /// Errors of the database; I/O errors.
    pub fn clear_outdated_cache(&self) -> Result<()> {
        let documents = |database: &Database| {
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            database.rows::<(i64, [u8; 32])>("SELECT id, digest FROM document ORDER BY id", [], read)
        };
        let now = Database::open_to_read(self.database.path())?;
        if documents(&now)? == documents(&self.database)? { Ok(()) } else { clear(self.folder()) }
    }

    fn cache(&self) -> PathBuf {
        cache(self.folder())
    }
}

impl Writer {
    /// Stores content that was derived from the data that `key` digests; replaces the previous content of this name.
    ///
    /// # Errors
    /// I/O errors; the previous content is kept then.
    pub fn keep(&self, name: &str, key: &Digest, content: &[u8]) -> Result<()> {
        let path = self.cache_file(name);
        let aside = path.with_extension("new");
        let whole = [&key.0, &digest_of(key, content).0, content].concat();
        let written = private::folder(&self.cache()).and_then(|()| private::write(&aside, whole));
        written.and_then(|()| fs::rename(&aside, &path)).map_err(|source| Error::io(&path, source))
    }
}

fn digest_of(key: &Digest, content: &[u8]) -> Digest {
    Framed::default().field(&key.0).field(content).finish()
}
