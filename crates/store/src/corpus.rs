//! An open corpus: [`Corpus`] reads it, [`Writer`] also changes it. Their methods are defined with the data that they
//! operate on: document.rs, cut.rs, passage.rs, note.rs, derived.rs, vector.rs, verify.rs.

use std::fmt;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::counts::{Counts, counts_of};
use crate::database::Database;
use crate::derived_files::trained;
use crate::lock::Lock;
use crate::shared::{Copy, Hold, Tables};
use crate::{CorpusName, Error, Result, schema, title};

/// A corpus that is open for reading.
pub struct Corpus {
    name: CorpusName,
    folder: PathBuf,
    // Declared before the lock: fields are dropped in declaration order, and closing the database still writes.
    pub(crate) database: Database,
    /// Where its vectors are searched, if the corpus is shared.
    pub(crate) tables: Option<Tables>,
    _lock: Option<Lock>,
}

/// A corpus that is open for writing, by this writer only. It has all methods of a [`Corpus`].
#[derive(Debug)]
pub struct Writer(Corpus);

impl Corpus {
    pub(crate) fn new(
        name: CorpusName,
        folder: PathBuf,
        database: Database,
        hold: Option<Arc<Hold>>,
        lock: Option<Lock>,
    ) -> Result<Self> {
        let tables = match hold {
            Some(hold) => Copy::of(&database)?.map(|copy| Tables::of(&copy.id, hold)),
            None => None,
        };
        Ok(Self { name, folder, database, tables, _lock: lock })
    }

    /// The name under which it was opened.
    pub fn name(&self) -> &CorpusName {
        &self.name
    }

    /// Its title, or its name if it has none.
    pub fn title(&self) -> String {
        title::shown(&self.folder, &self.name)
    }

    /// The size of all its files in this folder, in bytes; of a corpus in a bundle, of its file there.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn bytes(&self) -> Result<u64> {
        if self.folder.exists() {
            return Ok(folder_bytes(&self.folder));
        }
        let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        self.database.number(size).map(i64::cast_unsigned)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a file or folder beside the database that is not derived from it. It is removed with the corpus.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of adapters that were trained on its documents, and of their training data. It is deleted when a document
    /// is replaced or removed, since it may contain words of the text, and with the corpus. Backups are without it.
    pub fn trained(&self) -> PathBuf {
        trained(&self.folder)
    }

    /// The version of the tables in its file.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn schema(&self) -> Result<i64> {
        schema::check(&self.database)
    }

    /// The id of the shared corpus of which it is a copy, and the number of the last change that it has; none if it is no
    /// copy.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn shared_version(&self) -> Result<Option<(String, i64)>> {
        Ok(Copy::of(&self.database)?.map(|copy| (copy.id, copy.version)))
    }

    /// Copies the corpus, as it was when it was opened, to a new file, from which [`crate::Corpora::restore`] makes a
    /// corpus again. Writers may continue meanwhile. Derived files are not copied.
    ///
    /// # Errors
    /// [`Error::FileExists`]; those of writing the file.
    pub fn back_up(&self, to: &Path) -> Result<()> {
        if to.exists() {
            return Err(Error::FileExists { path: to.to_path_buf() });
        }
        self.database.back_up(to)
    }

    /// Counts its items.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn counts(&self) -> Result<Counts> {
        counts_of(&self.database)
    }
}

impl Writer {
    pub(crate) fn new(corpus: Corpus) -> Self {
        Self(corpus)
    }
}

/// The size of all files in a folder and below it.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        metadata => metadata.map_or(0, |metadata| metadata.len()),
    };
    entries.map(bytes).sum()
}

impl fmt::Debug for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Corpus({})", self.folder.display())
    }
}

impl Deref for Writer {
    type Target = Corpus;

    fn deref(&self) -> &Corpus {
        &self.0
    }
}
