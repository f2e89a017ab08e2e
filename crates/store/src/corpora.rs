//! The folder of all corpora: lists, creates, opens and removes them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bundle::Bundle;

use crate::bundled::Bundled;
use crate::corpus::folder_bytes;
use crate::counts::counts_of;
use crate::database::{DATABASE_FILE, Database, Origin};
use crate::derived_files::complete_removal;
use crate::lock::Lock;
use crate::repair::{self, Repaired};
use crate::shared::{self, Copy, Head, Hold, Relation, Sharing};
use crate::{Corpus, CorpusName, Counts, Error, Postgres, Result, Writer, private, title};

/// Prefix of folders that are being removed; no corpus name begins with it.
const REMOVED_PREFIX: &str = ".removed-";

/// The corpora under one data folder, each in `corpora/<name>/`.
#[derive(Clone, Debug)]
pub struct Corpora {
    folder: PathBuf,
    sharing: Option<Sharing>,
    bundled: Option<Bundled>,
}

/// One entry of the list of corpora.
#[derive(Debug)]
pub struct Listing {
    pub name: CorpusName,
    /// Its title, or its name if it has none.
    pub title: String,
    /// Size of all its files in this folder, in bytes.
    pub bytes: u64,
    /// Its counts, or the error that prevented counting.
    pub counts: Result<Counts>,
}

impl Corpora {
    /// The corpora under `data_folder`, which need not exist yet.
    pub fn new(data_folder: impl AsRef<Path>) -> Self {
        Self { folder: data_folder.as_ref().join("corpora"), sharing: None, bundled: None }
    }

    /// The same corpora as copies of shared corpora, texts and vectors, in a database that all its clients share.
    #[must_use]
    pub fn with_vectors(self, postgres: Option<Arc<Postgres>>) -> Self {
        Self { sharing: postgres.map(|postgres| Sharing { postgres, space: String::new() }), ..self }
    }

    /// The same, and beside them the corpora of a bundle, which are only read.
    #[must_use]
    pub fn with_bundle(self, bundle: Option<Arc<Bundle>>) -> Self {
        Self { bundled: bundle.map(Bundled), ..self }
    }

    /// The same, shared only with the holder named `holder`.
    #[must_use]
    pub fn of_holder(self, holder: &str) -> Self {
        Self { sharing: self.sharing.map(|sharing| Sharing { space: holder.to_owned(), ..sharing }), ..self }
    }

    /// Creates an empty corpus and opens it for writing.
    ///
    /// # Errors
    /// [`Error::CorpusExists`], and those of opening.
    pub fn create(&self, name: &str) -> Result<Writer> {
        self.create_empty(name, None)
    }

    /// Creates an empty corpus with a name and a title, and opens it for writing.
    ///
    /// # Errors
    /// [`Error::InvalidTitle`], [`Error::CorpusExists`], and those of opening.
    pub fn create_named(&self, name: &str, title: &str) -> Result<Writer> {
        self.create_empty(name, Some(title::checked(title)?))
    }

    /// Creates an empty corpus with a title, under a name made from it that no corpus has and that is not taken otherwise,
    /// and opens it for writing.
    ///
    /// # Errors
    /// [`Error::InvalidTitle`], and those of opening.
    pub fn create_titled(&self, title: &str, is_taken: impl Fn(&str) -> bool) -> Result<Writer> {
        let title = title::checked(title)?;
        for name in title::names(title).filter(|name| !is_taken(name)) {
            match self.create_empty(&name, Some(title)) {
                Err(Error::CorpusExists { .. } | Error::CorpusBusy { .. }) => {}
                created => return created,
            }
        }
        Err(Error::CorpusExists { name: title.to_owned() })
    }

    /// Changes the title of a corpus; its name remains.
    ///
    /// # Errors
    /// [`Error::InvalidTitle`], [`Error::UnknownCorpus`], I/O errors.
    pub fn set_title(&self, name: &str, title: &str) -> Result<()> {
        let title = title::checked(title)?;
        let (name, folder) = self.find_to_change(name)?;
        private::folder(&folder).map_err(|source| Error::io(&folder, source))?;
        // The corpus is not removed meanwhile.
        let _lock = Lock::reading(&folder, &name)?;
        title::set(&folder, Some(title))
    }

    /// Creates a corpus from a file of [`Corpus::back_up`], which is checked completely before, and opens it for
    /// writing. The copy of a shared corpus becomes a corpus of its own.
    ///
    /// # Errors
    /// [`Error::CorpusExists`], [`Error::NotACorpus`], [`Error::NewerSchema`], [`Error::Damaged`], and those of opening;
    /// nothing is created then.
    pub fn restore(&self, name: &str, backup: &Path) -> Result<Writer> {
        if !backup.is_file() {
            return Err(Error::io(backup, io::ErrorKind::NotFound.into()));
        }
        let folder = backup.parent().map(Path::to_path_buf).unwrap_or_default();
        let stored = Corpus::new(name.parse()?, folder, Database::open_to_read(backup)?, None, None)?;
        stored.verify()?;
        self.create_with(name, None, |path| stored.database.copy(path, shared::forget_sharing))
    }

    /// Makes a damaged corpus sound with all that can be read of it; there must be no readers. The copy of a shared corpus
    /// is fetched anew instead. The damaged file is kept beside it as `memory.damaged.sqlite`, until a document is removed
    /// or replaced.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`]; [`Error::NotACorpus`] and [`Error::Damaged`] when nothing can be read.
    pub fn repair(&self, name: &str) -> Result<Repaired> {
        let (name, folder) = self.find(name)?;
        let _lock = Lock::writing(&folder, &name)?;
        let _alone = Lock::without_readers(&folder, &name)?;
        let path = folder.join(DATABASE_FILE);
        let damaged = Corpus::new(name.clone(), folder.clone(), Database::open_to_read(&path)?, None, None)?;
        if damaged.verify().is_ok() {
            return Ok(Repaired::Sound);
        }
        if let Some(sharing) = &self.sharing {
            let _hold = sharing.hold(&name)?;
            // A file that is no copy of the corpus there is repaired by itself.
            let is_of =
                |head: &Head| Copy::of(&damaged.database).map(|copy| copy.is_some_and(|copy| copy.id == head.id));
            if let Some(head) = sharing.head(&name, None)?
                && is_of(&head).unwrap_or(true)
            {
                return repair::fetch(&damaged, |new| sharing.fetch_whole(&head, new));
            }
        }
        repair::repair(&damaged)
    }

    fn create_empty(&self, name: &str, title: Option<&str>) -> Result<Writer> {
        self.create_with(name, title, |path| Database::create(path, |_| Ok(())).map(drop))
    }

    fn create_with(&self, name: &str, title: Option<&str>, make: impl FnOnce(&Path) -> Result<()>) -> Result<Writer> {
        let name: CorpusName = name.parse()?;
        if self.bundled.as_ref().is_some_and(|bundled| bundled.has(&name)) {
            return Err(Error::CorpusExists { name: name.0 });
        }
        let folder = self.folder.join(&name.0);
        private::folder(&folder).map_err(|source| Error::io(&folder, source))?;
        let lock = Lock::writing(&folder, &name)?;
        let hold = self.sharing.as_ref().map(|sharing| sharing.hold(&name)).transpose()?;
        let path = folder.join(DATABASE_FILE);
        let exists = match (&self.sharing, &hold) {
            (Some(sharing), Some(hold)) => match sharing.relation(&name, &folder)?.1 {
                Relation::Absent => false,
                // The copy is of another corpus, so it is deleted.
                Relation::Removed => sharing.writing(&name, &folder, hold)?.is_some(),
                _ => true,
            },
            _ => path.exists(),
        };
        if exists {
            return Err(Error::CorpusExists { name: name.0 });
        }
        // No list shows the corpus before it has its title.
        title::set(&folder, title)?;
        make(&path).inspect_err(|_| drop(title::set(&folder, None)))?;
        self.writer(name, folder, lock, hold)
    }

    /// Opens a corpus for reading, beside any number of other readers and a writer. The reader sees a snapshot of this
    /// moment, without later writes. Creates nothing except the copy of a shared corpus.
    ///
    /// # Errors
    /// [`Error::UnknownCorpus`], [`Error::CorpusBusy`] while texts are being removed, [`Error::Unrecovered`],
    /// [`Error::NotACorpus`], [`Error::NewerSchema`], [`Error::Damaged`]; of a shared corpus [`Error::Postgres`],
    /// [`Error::Differs`], [`Error::OtherSchema`].
    pub fn open(&self, name: &str) -> Result<Corpus> {
        let (name, folder) = match (self.find(name), &self.bundled) {
            (Err(Error::UnknownCorpus { nearest, name }), Some(bundled)) => {
                return bundled.open(&name.parse()?)?.ok_or(Error::UnknownCorpus { nearest, name });
            }
            (found, _) => found?,
        };
        self.unless_removed(&name, &folder, || self.open_found(&name, &folder))
    }

    fn open_found(&self, name: &CorpusName, folder: &Path) -> Result<Corpus> {
        self.tighten(folder)?;
        let hold = match &self.sharing {
            Some(sharing) => Some(sharing.reading(name, folder)?.ok_or_else(|| self.unknown(name))?),
            None => None,
        };
        let lock = Lock::reading(folder, name)?;
        let database = Database::open_to_read(&folder.join(DATABASE_FILE))?;
        Corpus::new(name.clone(), folder.to_owned(), database, hold, lock)
    }

    /// Opens a corpus; [`Error::UnknownCorpus`] if it is removed meanwhile. One that is created again meanwhile is opened again.
    fn unless_removed<T>(&self, name: &CorpusName, folder: &Path, open: impl Fn() -> Result<T>) -> Result<T> {
        let lacks_file =
            |error: &Error| matches!(error, Error::Io { .. } | Error::NotPermitted { .. } | Error::Database { .. });
        match open() {
            Err(error) if self.sharing.is_none() && lacks_file(&error) => match has_database(folder) {
                Ok(false) => Err(self.unknown(name)),
                Ok(true) => open(),
                Err(_) => Err(error),
            },
            opened => opened,
        }
    }

    /// Opens a corpus for writing, beside any number of readers.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Error::CorpusBusy`] while another writer has it open, [`Error::NotPermitted`] in a
    /// read-only folder.
    pub fn open_writer(&self, name: &str) -> Result<Writer> {
        let (name, folder) = self.find_to_change(name)?;
        if self.sharing.is_some() {
            private::folder(&folder).map_err(|source| Error::io(&folder, source))?;
        }
        let open = || {
            self.tighten(&folder)?;
            let lock = Lock::writing(&folder, &name)?;
            let hold = self.sharing.as_ref().map(|sharing| sharing.hold(&name)).transpose()?;
            self.writer(name.clone(), folder.clone(), lock, hold)
        };
        self.unless_removed(&name, &folder, open)
    }

    fn writer(&self, name: CorpusName, folder: PathBuf, lock: Lock, hold: Option<Arc<Hold>>) -> Result<Writer> {
        complete_removal(&folder)?;
        private::sweep(&folder).map_err(|source| Error::io(&folder, source))?;
        if let (Some(sharing), Some(hold)) = (&self.sharing, &hold) {
            sharing.writing(&name, &folder, hold)?.ok_or_else(|| self.unknown(&name))?;
        }
        let database = Database::open_to_write(&folder.join(DATABASE_FILE))?
            .with_origin(hold.clone().map(|hold| hold as Arc<dyn Origin>));
        Corpus::new(name, folder, database, hold, Some(lock)).map(Writer::new)
    }

    /// Removes a corpus with all its files: immediately from the list, then from the disk. A shared corpus is removed
    /// for all clients; copies in other data folders are deleted when the corpus is next opened there.
    ///
    /// # Errors
    /// [`Error::UnknownCorpus`], [`Error::CorpusBusy`] while a reader or writer has it open, [`Error::NotPermitted`].
    pub fn remove(&self, name: &str) -> Result<()> {
        let (name, folder) = self.find_to_change(name)?;
        let is_here = folder.exists();
        let lock = || Ok((Lock::writing(&folder, &name)?, Lock::without_readers(&folder, &name)?));
        let locks = is_here.then(lock).transpose()?;
        if let Some(sharing) = &self.sharing {
            let hold = sharing.hold(&name)?;
            if let (Some(head), _) = sharing.relation(&name, &folder)? {
                shared::remove(&hold, &head)?;
            }
        }
        if !is_here {
            return Ok(());
        }
        self.clear_removed()?;
        let removed = self.folder.join(format!("{REMOVED_PREFIX}{name}"));
        let renamed = fs::rename(&folder, &removed).and_then(|()| private::sync_name(&removed));
        renamed.map_err(|source| Error::io(&folder, source))?;
        drop(locks);
        delete_folder(&removed)
    }

    /// Deletes the files that interrupted removals have left.
    ///
    /// # Errors
    /// I/O errors.
    pub fn clear_removed(&self) -> Result<()> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let removed = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(REMOVED_PREFIX));
        removed.map(|entry| entry.path()).try_for_each(|folder| delete_folder(&folder))
    }

    /// All corpora by name, including those open for writing; a damaged corpus is listed with its error.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::NotPermitted`] when the folder cannot be read, [`Error::Postgres`].
    pub fn list(&self) -> Result<Vec<Listing>> {
        let mut there = HashMap::new();
        let mut listings = Vec::new();
        if let Some(sharing) = &self.sharing {
            there.extend(sharing.list()?.into_iter().map(|entry| (entry.name, entry.counts)));
        }
        for name in self.names()? {
            let folder = self.folder.join(&name.0);
            let counts_there = there.remove(&name);
            let relation = self.sharing.as_ref().map(|sharing| sharing.relation(&name, &folder)).transpose();
            let counts = match (relation, counts_there) {
                (Err(error @ Error::Postgres { .. }), _) => return Err(error),
                (Err(error), _) => Err(error),
                (Ok(Some((None, Relation::Removed))), _) => continue,
                (Ok(_), Some(counts)) => Ok(counts),
                (Ok(_), None) => {
                    Database::open_to_read(&folder.join(DATABASE_FILE)).and_then(|database| counts_of(&database))
                }
            };
            listings.push(Listing { title: title::shown(&folder, &name), name, bytes: folder_bytes(&folder), counts });
        }
        listings.extend(there.into_iter().map(|(name, counts)| {
            let title = name.to_string();
            Listing { name, title, bytes: 0, counts: Ok(counts) }
        }));
        for (name, entry) in self.bundled.iter().flat_map(Bundled::list) {
            if listings.iter().all(|listing| listing.name != name) {
                let counts = self.open(&name.0).and_then(|corpus| corpus.counts());
                listings.push(Listing { title: name.to_string(), name, bytes: entry.bytes, counts });
            }
        }
        listings.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listings)
    }

    /// Restricts a corpus to its owner if an older version or another program has left it readable for others.
    fn tighten(&self, corpus: &Path) -> Result<()> {
        let tightened = private::tighten_one(&self.folder).and_then(|()| private::tighten(corpus));
        tightened.map_err(|source| Error::io(corpus, source))
    }

    /// The folder of a corpus that exists here, or that is shared and can be copied here. One that this user may not read is
    /// [`Error::NotPermitted`].
    fn find(&self, name: &str) -> Result<(CorpusName, PathBuf)> {
        let name: CorpusName = name.parse()?;
        let folder = self.folder.join(&name.0);
        if has_database(&folder)? {
            return Ok((name, folder));
        }
        match &self.sharing {
            Some(sharing) if sharing.has(&name)? => Ok((name, folder)),
            _ => Err(self.unknown(&name)),
        }
    }

    /// As [`find`](Self::find); the corpora of a bundle are refused.
    fn find_to_change(&self, name: &str) -> Result<(CorpusName, PathBuf)> {
        self.find(name).map_err(|error| match (&error, &self.bundled, name.parse()) {
            (Error::UnknownCorpus { .. }, Some(bundled), Ok(name)) if bundled.has(&name) => {
                bundled.refuse_change(&name)
            }
            _ => error,
        })
    }

    fn unknown(&self, name: &CorpusName) -> Error {
        let shared = self.sharing.as_ref().and_then(|sharing| sharing.list().ok()).unwrap_or_default();
        let mut known = self.names().unwrap_or_default();
        known.extend(shared.into_iter().map(|entry| entry.name));
        known.extend(self.bundled.iter().flat_map(Bundled::list).map(|(name, _)| name));
        known.sort();
        known.dedup();
        Error::UnknownCorpus { nearest: nearest(name, known), name: name.0.clone() }
    }

    /// The names of the folders that hold a database, or that cannot be read, sorted.
    fn names(&self) -> Result<Vec<CorpusName>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::io(&self.folder, source)),
        };
        let corpora = entries.flatten().filter(|entry| has_database(&entry.path()).unwrap_or(true));
        let mut names: Vec<CorpusName> = corpora.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        names.sort();
        Ok(names)
    }
}

/// Whether the folder of a corpus has its database.
///
/// # Errors
/// [`Error::NotPermitted`] of the folder if this user may not read it, other I/O errors.
fn has_database(folder: &Path) -> Result<bool> {
    match folder.join(DATABASE_FILE).try_exists() {
        // Not a corpus, but a file among them.
        Err(source) if source.kind() == io::ErrorKind::NotADirectory => Ok(false),
        exists => exists.map_err(|source| Error::io(folder, source)),
    }
}

/// Up to three names that `name` may be a misspelling of, most similar first.
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
