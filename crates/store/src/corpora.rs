//! The folder of all corpora: which there are, and the way into each.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use crate::corpus::{DATABASE_FILE, counts_of};
use crate::database::Database;
use crate::lock::Lock;
use crate::postgres::Corner;
use crate::{Corpus, Counts, Error, Postgres, Result, Writer};

/// Folders that are on their way out begin with this, which no corpus name does.
const REMOVED_PREFIX: &str = ".removed-";

/// The corpora under one data folder, each in `corpora/<name>/`.
#[derive(Clone, Debug)]
pub struct Corpora {
    folder: PathBuf,
    postgres: Option<Arc<Postgres>>,
}

/// A valid name: 1 to 64 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorpusName(String);

/// One line of the list of corpora.
#[derive(Debug)]
pub struct Listing {
    pub name: CorpusName,
    /// Size of all its files.
    pub bytes: u64,
    /// What it holds, or why that cannot be said.
    pub counts: Result<Counts>,
}

impl Corpora {
    /// The corpora under `data_folder`, which need not exist yet.
    pub fn new(data_folder: impl AsRef<Path>) -> Self {
        Self { folder: data_folder.as_ref().join("corpora"), postgres: None }
    }

    /// The same, their vectors searched in a database.
    #[must_use]
    pub fn with_vectors(self, postgres: Option<Arc<Postgres>>) -> Self {
        Self { postgres, ..self }
    }

    /// Creates an empty corpus and opens it for writing.
    ///
    /// # Errors
    /// [`Error::CorpusExists`], and those of opening.
    pub fn create(&self, name: &str) -> Result<Writer> {
        let name: CorpusName = name.parse()?;
        let folder = self.folder.join(&name.0);
        fs::create_dir_all(&folder).map_err(|source| Error::io(&folder, source))?;
        let lock = Lock::writing(&folder, &name)?;
        let path = folder.join(DATABASE_FILE);
        if path.exists() {
            return Err(Error::CorpusExists { name: name.0 });
        }
        Ok(Writer::new(Corpus::new(name, folder, Database::create(&path)?, self.postgres.clone(), Some(lock))))
    }

    /// Opens a corpus for reading, beside any number of other readers and a writer, as it is at this moment: what is
    /// written later is not seen. Creates nothing.
    ///
    /// # Errors
    /// [`Error::UnknownCorpus`], [`Error::CorpusBusy`] while texts are being removed, [`Error::Unrecovered`],
    /// [`Error::NotACorpus`], [`Error::NewerSchema`], [`Error::Damaged`].
    pub fn open(&self, name: &str) -> Result<Corpus> {
        let (name, folder) = self.find(name)?;
        let lock = Lock::reading(&folder, &name)?;
        let database = Database::open_to_read(&folder.join(DATABASE_FILE))?;
        Ok(Corpus::new(name, folder, database, self.postgres.clone(), lock))
    }

    /// Opens a corpus for writing, beside any number of readers.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Error::CorpusBusy`] while somebody else writes, [`Error::NotPermitted`] in a read-only
    /// folder.
    pub fn open_writer(&self, name: &str) -> Result<Writer> {
        let (name, folder) = self.find(name)?;
        let lock = Lock::writing(&folder, &name)?;
        let database = Database::open_to_write(&folder.join(DATABASE_FILE))?;
        Ok(Writer::new(Corpus::new(name, folder, database, self.postgres.clone(), Some(lock))))
    }

    /// Removes a corpus with all its files: at once from the list, then from the disk.
    ///
    /// # Errors
    /// [`Error::UnknownCorpus`], [`Error::CorpusBusy`] while anybody has it open, [`Error::NotPermitted`].
    pub fn remove(&self, name: &str) -> Result<()> {
        let (name, folder) = self.find(name)?;
        let locks = (Lock::writing(&folder, &name)?, Lock::without_readers(&folder, &name)?);
        if let Some(postgres) = &self.postgres {
            postgres.forget(&Corner::of(&folder))?;
        }
        let removed = self.folder.join(format!("{REMOVED_PREFIX}{name}"));
        // What an interrupted removal left behind.
        delete_folder(&removed)?;
        fs::rename(&folder, &removed).map_err(|source| Error::io(&folder, source))?;
        drop(locks);
        delete_folder(&removed)
    }

    /// All corpora by name, also those that are being written; a damaged one is listed with what is wrong with it.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::NotPermitted`] when the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Listing>> {
        let listing = |name: CorpusName| {
            let folder = self.folder.join(&name.0);
            let counts = Database::open_to_read(&folder.join(DATABASE_FILE)).and_then(|database| counts_of(&database));
            Listing { name, bytes: folder_bytes(&folder), counts }
        };
        Ok(self.names()?.into_iter().map(listing).collect())
    }

    fn find(&self, name: &str) -> Result<(CorpusName, PathBuf)> {
        let name: CorpusName = name.parse()?;
        let folder = self.folder.join(&name.0);
        if folder.join(DATABASE_FILE).exists() {
            return Ok((name, folder));
        }
        let nearest = nearest(&name, self.names().unwrap_or_default());
        Err(Error::UnknownCorpus { name: name.0, nearest })
    }

    /// The names of the folders that hold a database, sorted.
    fn names(&self) -> Result<Vec<CorpusName>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::io(&self.folder, source)),
        };
        let corpora = entries.flatten().filter(|entry| entry.path().join(DATABASE_FILE).exists());
        let mut names: Vec<CorpusName> = corpora.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        names.sort();
        Ok(names)
    }
}

impl FromStr for CorpusName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let valid = (1..=64).contains(&name.len())
            && name.bytes().next().is_some_and(letter_or_digit)
            && name.bytes().all(|byte| letter_or_digit(byte) || b"._-".contains(&byte));
        if valid { Ok(Self(name.to_owned())) } else { Err(Error::InvalidName { name: name.to_owned() }) }
    }
}

impl fmt::Display for CorpusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Up to three names that `name` may be a misspelling of, the most likely first.
fn nearest(name: &CorpusName, known: Vec<CorpusName>) -> Vec<String> {
    let mut near: Vec<(usize, String)> = known
        .into_iter()
        .map(|other| (strsim::damerau_levenshtein(&name.0, &other.0), other.0))
        .filter(|(edits, other)| *edits <= 2.max(name.0.len() / 3) || other.contains(&name.0))
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, other)| other).collect()
}

fn delete_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::io(folder, source)),
        _ => Ok(()),
    }
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        metadata => metadata.map_or(0, |metadata| metadata.len()),
    };
    entries.map(bytes).sum()
}
