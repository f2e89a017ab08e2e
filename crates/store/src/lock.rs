//! Locks of a corpus: one writer and, beside it, any number of readers, each with a snapshot from the time of opening.
//! Removing texts permanently, or the whole corpus, requires that there are no readers.
//!
//! These are locks of the operating system on the files `lock` (the writer) and `readers`, so the system releases them
//! when the process ends, for whatever reason. The files' content is informative only: the process that took the lock
//! last.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::{CorpusName, Error, Result, private, without_secrets};

/// The file that the writer locks exclusively.
const WRITER_FILE: &str = "lock";
/// The file that readers lock shared, and that a removal locks exclusively.
const READERS_FILE: &str = "readers";

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// The process that last opened a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// The address of its machine, if that may be another one.
    pub machine: Option<String>,
}

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
