//! Who has a corpus open: one writer, and beside it any number of readers, each of whom sees the corpus as it was when they
//! came. Whoever removes texts for good, or the whole corpus, needs that nobody reads.
//!
//! Locks are the operating system's, on the files `lock` (the writer) and `readers`, so they end with their process however
//! that ends. What the files say is only for people: the process that took the lock last.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::{CorpusName, Error, Result, private, without_secrets};

/// The file that the writer locks.
const WRITER_FILE: &str = "lock";
/// The file that readers share, and that whoever wants to be alone locks.
const READERS_FILE: &str = "readers";

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// The process that was last to open a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// The command line it was started with.
    pub command: String,
    /// The address of the machine on which it runs, if that may be another one.
    pub machine: Option<String>,
}

impl Lock {
    /// Takes the lock of the corpus in `folder` for writing.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] when somebody else writes.
    pub(crate) fn writing(folder: &Path, name: &CorpusName) -> Result<Self> {
        Self::exclusive(&folder.join(WRITER_FILE), name)
    }

    /// Keeps readers out of the corpus in `folder`.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] when somebody reads.
    pub(crate) fn without_readers(folder: &Path, name: &CorpusName) -> Result<Self> {
        Self::exclusive(&folder.join(READERS_FILE), name)
    }

    fn exclusive(path: &Path, name: &CorpusName) -> Result<Self> {
        let file = open_to_write(path).map_err(|source| Error::io(path, source))?;
        held(file.try_lock(), &file, path, name)?;
        Ok(Self::signed(file))
    }

    /// Takes the lock of the corpus in `folder` for reading; none where the file is missing and may not be made, as
    /// nobody can write there.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] when somebody is removing texts.
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

    /// True for the files of locks.
    pub(crate) fn is_file(path: &Path) -> bool {
        path.ends_with(WRITER_FILE) || path.ends_with(READERS_FILE)
    }

    /// Writes who holds the lock; without permission the lock holds all the same.
    fn signed(mut file: File) -> Self {
        let holder = Holder::this_process();
        let _unsigned =
            file.set_len(0).and_then(|()| file.write_all(format!("{}\n{}\n", holder.pid, holder.command).as_bytes()));
        Self(file)
    }
}

impl Drop for Lock {
    /// Closing the file is not enough: a process that is just being started from this one may hold a copy of it for a
    /// moment.
    fn drop(&mut self) {
        let _unlocked_by_closing_then = self.0.unlock();
    }
}

impl Holder {
    pub(crate) fn this_process() -> Self {
        let words: Vec<_> = std::env::args_os().map(|word| without_secrets(&word.to_string_lossy())).collect();
        Self { pid: std::process::id(), command: words.join(" "), machine: None }
    }

    fn read(mut file: &File) -> Option<Self> {
        let mut text = String::new();
        file.seek(SeekFrom::Start(0)).ok()?;
        file.read_to_string(&mut text).ok()?;
        let (pid, command) = text.split_once('\n')?;
        Some(Self { pid: pid.parse().ok()?, command: command.trim_end().to_owned(), machine: None })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.command)?;
        self.machine.as_ref().map_or(Ok(()), |machine| write!(f, " on {machine}"))
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
