//! Creating, opening, upgrading and copying the file of a corpus.
//!
//! Follows `SQLite`'s recommendations for durable files: WAL, synchronous FULL, foreign keys on, untrusted schema.

use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, ffi};

use super::Database;
use crate::version::{CHUNKED, VERSION};
use crate::{Error, Result, private, schema};

/// How long to wait while another program (a backup, a database browser) locks the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// `secure_delete` overwrites deleted texts on the disk; `fullfsync` has an effect on macOS only.
const WRITER_PRAGMAS: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
";

impl Database {
    /// Creates a database at `path`, where none exists. The file appears there complete, even if this is interrupted.
    pub(crate) fn create(path: &Path, fill: impl FnOnce(&Self) -> Result<()>) -> Result<Self> {
        let aside = path.with_extension("new");
        for leftover in [&aside, &beside(&aside, "-wal"), &beside(&aside, "-shm")] {
            delete_file(leftover).map_err(|source| Error::io(leftover, source))?;
        }
        // An empty file is an empty database; `SQLite` gives the files beside it the same permissions.
        private::create(&aside).map_err(|source| Error::io(&aside, source))?;
        let database = Self::connect(&aside, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        database.batch(WRITER_PRAGMAS)?;
        schema::install(&database)?;
        fill(&database)?;
        // Closing would copy the log into the file too, but ignore a failure, and the file is moved without its log.
        database.empty_log()?;
        database.connection.close().map_err(|(_, source)| Error::sqlite(&aside, source))?;
        fs::rename(&aside, path).and_then(|()| private::sync_name(path)).map_err(|source| Error::io(path, source))?;
        Self::open_to_write(path)
    }

    /// Opens an existing database for reading and writing.
    pub(crate) fn open_to_write(path: &Path) -> Result<Self> {
        let database = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let version = schema::check(&database)?;
        database.batch(WRITER_PRAGMAS)?;
        if version < VERSION {
            database.back_up(&earlier(path, version))?;
            schema::upgrade(&database)?;
        }
        Ok(database)
    }

    /// Opens an existing database for reading, also in a read-only folder. All reads see one snapshot, taken at
    /// opening, regardless of concurrent writers.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self> {
        let opened = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|database| {
            schema::supplement(&database)?;
            database.batch("BEGIN")?;
            // The first read takes the snapshot.
            let has_chunks = schema::check(&database)? >= CHUNKED;
            Ok(Self { has_chunks, ..database })
        });
        match opened {
            Err(Error::NotPermitted { .. }) => Self::open_unchanging(path),
            opened => opened,
        }
    }

    /// Opens a database that no process can change. `SQLite` then ignores the write-ahead log, which must therefore be
    /// empty.
    fn open_unchanging(path: &Path) -> Result<Self> {
        if fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0) {
            return Err(Error::Unrecovered { path: path.to_path_buf() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        Self::unchanging(connection, path)
    }

    /// Opens the bytes of a database for reading without copying them; `path` is for errors.
    pub(crate) fn open_in_memory(path: &Path, bytes: &'static [u8]) -> Result<Self> {
        let connection = Connection::open_in_memory().and_then(|mut connection| {
            connection.deserialize_bytes("main", bytes)?;
            Ok(connection)
        });
        Self::unchanging(connection, path)
    }

    fn unchanging(connection: rusqlite::Result<Connection>, path: &Path) -> Result<Self> {
        let database = Self::with(connection, path)?;
        schema::supplement(&database)?;
        let has_chunks = schema::check(&database)? >= CHUNKED;
        Ok(Self { has_chunks, ..database })
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self> {
        Self::with(Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX), path)
    }

    fn with(connection: rusqlite::Result<Connection>, path: &Path) -> Result<Self> {
        let prepared = connection.and_then(|connection| {
            connection.busy_timeout(PATIENCE)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
            Ok(connection)
        });
        let connection = prepared.map_err(|source| Error::sqlite(path, source))?;
        Ok(Self { connection, path: path.to_path_buf(), has_chunks: true, origin: None })
    }

    /// Copies the database, as it is at this moment, to a new file that its owner only may read. Writers may continue
    /// meanwhile. The file appears complete, even if this is interrupted.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::NotPermitted`], [`Error::Io`] of the new file; [`Error::Locked`].
    pub(crate) fn back_up(&self, to: &Path) -> Result<()> {
        // Files of the user may be beside it, so its whole name is part of this one.
        self.copy_by(&beside(to, ".unfinished"), to, |_| Ok(()))
    }

    /// The same, with a change of the copy before it appears, in a folder of ours.
    pub(crate) fn copy(&self, to: &Path, change: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        self.copy_by(&to.with_extension("new"), to, change)
    }

    /// The same; the copy has the name `aside` until it is complete.
    fn copy_by(&self, aside: &Path, to: &Path, change: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        delete_file(aside).and_then(|()| private::create(aside)).map_err(|source| Error::io(aside, source))?;
        let copied = || -> Result<()> {
            let mut copy = Self::connect(aside, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            // All pages in one step, which is one read transaction: other steps begin anew after every change.
            let step = |copy: &mut Connection| Backup::new(&self.connection, copy)?.step(-1);
            if step(&mut copy.connection).map_err(|source| Error::sqlite(aside, source))? != StepResult::Done {
                // A lock is no error of a step.
                let busy = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None);
                return Err(Error::sqlite(&self.path, busy));
            }
            // The mode of the log is copied too; a single file needs no log.
            copy.batch("PRAGMA journal_mode = DELETE;")?;
            change(&copy)?;
            copy.connection.close().map_err(|(_, source)| Error::sqlite(aside, source))
        };
        let placed = copied().and_then(|()| {
            let synced = File::open(aside).and_then(|file| file.sync_all());
            let moved = synced.and_then(|()| fs::rename(aside, to)).and_then(|()| private::sync_name(to));
            moved.map_err(|source| Error::io(to, source))
        });
        if placed.is_err() {
            let _kept_error = delete_file(aside);
        }
        placed
    }
}

/// The path of the backup that is made before a file of an older version is upgraded.
fn earlier(path: &Path, version: i64) -> PathBuf {
    path.with_extension(format!("schema{version}.sqlite"))
}

/// The path of a file that `SQLite` keeps beside `path`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn delete_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The path as a URI with `SQLite`'s `immutable` parameter.
fn immutable_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(*byte)),
            _ => write!(uri, "%{byte:02X}").expect("a String takes everything"),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::immutable_uri;
    use crate::{Corpora, Error, Result};

    #[test]
    fn a_copy_of_a_locked_database_is_an_error_and_no_file() -> Result<()> {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let writer = Corpora::new(folder.path()).create("locked")?;
        let file = folder.path().join("backup.sqlite");
        let copied = writer.database.transact(|| {
            writer.database.execute("INSERT INTO embedder (name, dims) VALUES ('tiny', 2)", [])?;
            writer.database.back_up(&file)
        });
        assert!(matches!(copied, Err(Error::Locked { .. })), "{copied:?}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("it can be listed").count(), 1, "the corpora alone");
        writer.back_up(&file)?;
        assert!(file.exists());
        Ok(())
    }

    #[test]
    fn a_path_becomes_a_uri() {
        let check = |path: &str, uri: &str| assert_eq!(immutable_uri(Path::new(path)), uri);
        check("/a/b.sqlite", "file:/a/b.sqlite?immutable=1");
        check("/a b/c?d#e%f/é", "file:/a%20b/c%3Fd%23e%25f/%C3%A9?immutable=1");
    }
}
