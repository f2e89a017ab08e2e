//! Corpora that several processes share through PostgreSQL, on one machine or on several.
//!
//! PostgreSQL holds the corpus; the file in each data folder is a copy, updated whenever the corpus is opened. All
//! reads use the copy, so a reader costs one query to the network. A writer sends each change as one PostgreSQL
//! transaction before it commits its own: either all clients have the change, or it was not made.
//!
//! A copy may lack changes, and it may have unsent changes (made without PostgreSQL) as long as no other client makes
//! any. Copies with diverged histories are rejected, never merged. A corpus that PostgreSQL lacks is sent completely.

mod copy;
mod fetch;
mod hold;
mod journal;
mod send;
mod session;
mod tables;
mod vectors;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use self::copy::has_changes;
pub(crate) use self::copy::{Copy, changed_documents, forget_sharing, watch_texts};
pub(crate) use self::hold::Hold;
use self::hold::SharedName;
use self::journal::Entry;
pub(crate) use self::journal::Head;
use self::send::send;
pub(crate) use self::session::Session;
pub(crate) use self::vectors::{BATCH, MAX_CANDIDATES, Table, Tables};
use crate::database::{DATABASE_FILE, Database, Origin};
use crate::derived_files::{self, Removal};
use crate::lock::Lock;
use crate::version::VERSION;
use crate::{CorpusName, Error, Postgres, Result, private};

/// How long a reader waits for other processes of this machine to update the copy.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
/// The oldest schema of corpora in PostgreSQL.
const OLDEST: i64 = 2;

/// A change is committed in PostgreSQL for all clients that share the corpus.
impl Origin for Hold {
    fn commit(&self, database: &Database) -> Result<Option<String>> {
        if !has_changes(database)? {
            return Ok(None);
        }
        send(self, database)?;
        Ok(Some(self.place().to_owned()))
    }
}

/// The corpora of one space in PostgreSQL.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    pub postgres: Arc<Postgres>,
    /// The owner: the holder of an API key; empty for corpora without an owner.
    pub space: String,
}

/// The state of the file in a folder relative to the corpus in PostgreSQL.
#[derive(Debug)]
pub(crate) enum Relation {
    /// Neither exists.
    Absent,
    /// Only the corpus in PostgreSQL exists.
    Missing,
    /// Only the file exists.
    Here,
    Current,
    /// The file has the newest change and unsent changes of its own.
    Ahead,
    /// The file has the changes up to this number and lacks later ones.
    Behind(i64),
    /// The corpus already has the file's own change: the process was stopped before it recorded that.
    Kept(Copy),
    /// The corpus was removed in PostgreSQL.
    Removed,
}

impl Sharing {
    fn named(&self, name: &CorpusName) -> SharedName {
        SharedName { space: self.space.clone(), name: name.clone() }
    }

    /// All corpora of the space in PostgreSQL.
    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        journal::list(&self.postgres.readers, &self.space)
    }

    /// Whether PostgreSQL has a corpus of this name.
    pub(crate) fn has(&self, name: &CorpusName) -> Result<bool> {
        Ok(journal::head(&self.postgres.readers, &self.named(name), None)?.is_some())
    }

    /// Takes the lock for writing, which only one client can hold.
    pub(crate) fn hold(&self, name: &CorpusName) -> Result<Arc<Hold>> {
        Hold::writing(&self.postgres, self.named(name)).map(Arc::new)
    }

    /// Takes a lock for reading a corpus and updates its file to at least the version at the time of the call; `None`
    /// if there is no such corpus.
    pub(crate) fn reading(&self, name: &CorpusName, folder: &Path) -> Result<Option<Arc<Hold>>> {
        let hold = Arc::new(Hold::reading(&self.postgres, self.named(name))?);
        let patience = Instant::now() + PATIENCE;
        let mut wanted = None;
        loop {
            let (head, relation) = self.relation(name, folder)?;
            let wanted = *wanted.get_or_insert(head.as_ref().map_or(0, |head| head.version));
            match relation {
                Relation::Absent => return Ok(None),
                Relation::Current => return Ok(Some(hold)),
                Relation::Behind(version) if version >= wanted => return Ok(Some(hold)),
                _ => {}
            }
            match self.refresh(name, folder) {
                // A writer of this folder is updating the file, or has just closed it.
                Err(Error::CorpusBusy { .. }) if Instant::now() < patience => thread::sleep(PAUSE),
                refreshed => refreshed?,
            }
        }
    }

    fn refresh(&self, name: &CorpusName, folder: &Path) -> Result<()> {
        private::folder(folder).map_err(|source| Error::io(folder, source))?;
        let _lock = Lock::writing(folder, name)?;
        let (head, relation) = self.relation(name, folder)?;
        self.mend(name, folder, head, relation, || self.hold(name))
    }

    /// Updates the file for a caller that holds the writer's locks here and in PostgreSQL; `None` if there is no such
    /// corpus.
    pub(crate) fn writing(&self, name: &CorpusName, folder: &Path, hold: &Arc<Hold>) -> Result<Option<()>> {
        loop {
            let (head, relation) = self.relation(name, folder)?;
            match relation {
                Relation::Absent => return Ok(None),
                Relation::Current if head.as_ref().is_some_and(|head| head.schema == VERSION) => {
                    return Ok(Some(()));
                }
                _ => self.mend(name, folder, head, relation, || Ok(Arc::clone(hold)))?,
            }
        }
    }

    /// The state of a corpus in PostgreSQL, if it exists, with the digests to compare with a copy.
    ///
    /// # Errors
    /// [`Error::OtherSchema`], [`Error::Postgres`].
    pub(crate) fn head(&self, name: &CorpusName, copy: Option<&Copy>) -> Result<Option<Head>> {
        let head = journal::head(&self.postgres.readers, &self.named(name), copy)?;
        if let Some(Head { schema: found, .. }) = head
            && !(OLDEST..=VERSION).contains(&found)
        {
            let (name, place, known) = (name.to_string(), self.postgres.place().to_owned(), VERSION);
            return Err(Error::OtherSchema { name, place, found, known });
        }
        Ok(head)
    }

    /// Makes a new file a copy of a corpus.
    pub(crate) fn fetch_whole(&self, head: &Head, database: &Database) -> Result<()> {
        Copy::first(head.id.clone()).install(database)?;
        fetch::fetch(&self.postgres.session()?, head, database, || Ok(()))
    }

    /// Compares the file in a folder with the corpus in PostgreSQL.
    ///
    /// # Errors
    /// [`Error::Differs`], [`Error::OtherSchema`], and those of opening.
    pub(crate) fn relation(&self, name: &CorpusName, folder: &Path) -> Result<(Option<Head>, Relation)> {
        let path = folder.join(DATABASE_FILE);
        let file = path.exists().then(|| Database::open_to_read(&path)).transpose()?;
        let copy = file.as_ref().map(Copy::of).transpose()?.flatten();
        let session = &self.postgres.readers;
        let head = self.head(name, copy.as_ref())?;
        let place = || self.postgres.place().to_owned();
        let relation = match (&file, &copy, &head) {
            (None, _, None) => Some(Relation::Absent),
            (None, _, Some(_)) => Some(Relation::Missing),
            (Some(_), None, None) => Some(Relation::Here),
            (Some(_), None, Some(_)) => None,
            (Some(file), Some(copy), Some(head)) if head.id == copy.id => same_corpus(file, copy, head)?,
            (Some(file), Some(copy), head) => {
                let removed = journal::was_removed(session, &copy.id)?;
                match (removed, head) {
                    (true, _) => (!has_changes(file)?).then_some(Relation::Removed),
                    (false, None) => Some(Relation::Here),
                    (false, Some(_)) => None,
                }
            }
        };
        let relation = relation.ok_or_else(|| Error::Differs { name: name.to_string(), place: place() })?;
        Ok((head, relation))
    }

    /// Makes file and corpus equal, except for cases that the caller must examine again. The caller holds the writer's
    /// lock here.
    fn mend(
        &self,
        name: &CorpusName,
        folder: &Path,
        head: Option<Head>,
        relation: Relation,
        hold: impl FnOnce() -> Result<Arc<Hold>>,
    ) -> Result<()> {
        let path = folder.join(DATABASE_FILE);
        match (relation, head) {
            (Relation::Here, _) => {
                let (hold, database) = (hold()?, Database::open_to_write(&path)?);
                Copy::first(journal::new_id(&self.postgres.readers)?).install(&database)?;
                database.transact(|| send(&hold, &database))
            }
            (Relation::Ahead, Some(head)) => {
                let (hold, database) = (hold()?, Database::open_to_write(&path)?);
                database.transact(|| {
                    if head.schema < VERSION {
                        copy::renew_documents(&database)?;
                    }
                    send(&hold, &database)
                })
            }
            // A writer follows, so the corpus in PostgreSQL is upgraded.
            (Relation::Current, Some(head)) if head.schema < VERSION => {
                let (hold, database) = (hold()?, Database::open_to_write(&path)?);
                database.transact(|| {
                    copy::renew_documents(&database)?;
                    send(&hold, &database)
                })
            }
            (Relation::Kept(newer), _) => {
                let database = Database::open_to_write(&path)?;
                database.transact(|| newer.settle(&database))
            }
            (Relation::Missing, Some(head)) => {
                Database::create(&path, |database| self.fetch_whole(&head, database)).map(drop)
            }
            (Relation::Behind(_), Some(head)) => {
                let database = Database::open_to_write(&path)?;
                let mut removal = None;
                let without = || {
                    derived_files::delete_graphs(folder)?;
                    removal = Some(Removal::begin(folder)?);
                    Ok(())
                };
                fetch::fetch(&self.postgres.session()?, &head, &database, without)?;
                let Some(removal) = removal else { return Ok(()) };
                removal.finish()?;
                database.empty_log()
            }
            (Relation::Removed, _) => {
                let _alone = Lock::without_readers(folder, name)?;
                discard(folder).map_err(|source| Error::io(folder, source))
            }
            (Relation::Absent | Relation::Missing | Relation::Current | Relation::Behind(_) | Relation::Ahead, _) => {
                Ok(())
            }
        }
    }
}

/// Removes a corpus from PostgreSQL; there must be no readers or other writers.
pub(crate) fn remove(hold: &Hold, head: &Head) -> Result<()> {
    let _alone = hold.alone()?;
    journal::remove(hold, &head.id, &vectors::prefix(&head.id))
}

/// Compares a copy with its corpus; `None` if their histories diverge.
fn same_corpus(file: &Database, copy: &Copy, head: &Head) -> Result<Option<Relation>> {
    if head.of_copy != Some(copy.digest) {
        return Ok(None);
    }
    Ok(match (has_changes(file)?, head.version == copy.version) {
        (false, true) => Some(Relation::Current),
        (false, false) => Some(Relation::Behind(copy.version)),
        (true, true) => Some(Relation::Ahead),
        (true, false) => {
            let newer = copy.with_changes(file, |_| Ok(()))?;
            (head.of_next == Some(newer.digest)).then_some(Relation::Kept(newer))
        }
    })
}

/// Deletes all files of a folder except its locks. The database is deleted last, after its log, because a log must
/// never be found beside another database.
fn discard(folder: &Path) -> std::io::Result<()> {
    let mut paths: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort_by_key(|path| path.ends_with(DATABASE_FILE));
    for path in paths.iter().filter(|path| !Lock::is_file(path)) {
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    Ok(())
}
