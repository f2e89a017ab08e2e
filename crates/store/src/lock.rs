//! Locks of a corpus: one writer and, beside it, any number of readers, each with a snapshot from the time of opening.
//! Removing texts permanently, or the whole corpus, requires that there are no readers.
//!
//! These are locks of the operating system on the files `lock` (the writer) and `readers`, so the system releases them
//! when the process ends, for whatever reason. The files' content is informative only: the process that took the lock
//! last.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use crate::{CorpusName, Error, Holder, Result, private};

/// The file that the writer locks exclusively.
const WRITER_FILE: &str = "lock";
/// The file that readers lock shared, and that a removal locks exclusively.
const READERS_FILE: &str = "readers";

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Takes the writer's lock of the corpus in `folder`.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] while another writer holds it.
    pub(crate) fn writing(folder: &Path, name: &CorpusName) -> Result<Self> {
        Self::exclusive(&folder.join(WRITER_FILE), name)
    }

    /// Locks readers out of the corpus in `folder`.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] while the corpus has readers.
    pub(crate) fn without_readers(folder: &Path, name: &CorpusName) -> Result<Self> {
        Self::exclusive(&folder.join(READERS_FILE), name)
    }

    fn exclusive(path: &Path, name: &CorpusName) -> Result<Self> {
        let file = open_to_write(path).map_err(|source| Error::io(path, source))?;
        held(file.try_lock(), &file, path, name)?;
        Ok(Self::signed(file))
    }

    /// Takes a reader's lock of the corpus in `folder`; none if the lock file is missing and cannot be created, because
    /// then no process can write there.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] while texts are being removed.
    pub(crate) fn reading(folder: &Path, name: &CorpusName) -> Result<Option<Self>> {
        let path = folder.join(READERS_FILE);
        let file = match open_to_write(&path).or_else(|_| File::open(&path)) {
            Ok(file) => file,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::io(&path, source)),
        };
        held(file.try_lock_shared(), &file, &path, name)?;
        Ok(Some(Self::signed(file)))
    }

    /// Whether `path` is a lock file.
    pub(crate) fn is_file(path: &Path) -> bool {
        path.ends_with(WRITER_FILE) || path.ends_with(READERS_FILE)
    }

    /// Writes the holder into the lock file; a failure to write does not release the lock.
    fn signed(mut file: File) -> Self {
        let holder = Holder::this_process();
        let _unsigned =
            file.set_len(0).and_then(|()| file.write_all(format!("{}\n{}\n", holder.pid, holder.command).as_bytes()));
        Self(file)
    }
}

impl Drop for Lock {
    /// Unlocks explicitly, because closing the file is not enough: a child process that is being started may hold a
    /// duplicate of its descriptor for a moment.
    fn drop(&mut self) {
        let _unlocked_by_closing_then = self.0.unlock();
    }
}

fn open_to_write(path: &Path) -> io::Result<File> {
    private::creating().read(true).truncate(false).open(path)
}

fn held(attempt: std::result::Result<(), TryLockError>, file: &File, path: &Path, name: &CorpusName) -> Result<()> {
    attempt.map_err(|refusal| match refusal {
        TryLockError::WouldBlock => Error::CorpusBusy { name: name.to_string(), holder: Holder::read(file) },
        TryLockError::Error(source) => Error::io(path, source),
    })
}
