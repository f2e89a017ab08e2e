//! The `SQLite` connection of a corpus: opens it and maps its failures to errors.
//!
//! Follows `SQLite`'s recommendations for durable files: WAL, synchronous FULL, foreign keys on, untrusted schema.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, ffi};

use crate::shared::{self, Hold};
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

/// What the name of a backup of an older version has between `memory.` and the version.
const EARLIER: &str = "schema";

/// How much of a text is read at once.
const PIECE_BYTES: usize = 1 << 20;

/// An open `memory.sqlite`.
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
    /// Whether texts are in chunks: in every file but older ones that are open for reading.
    has_chunks: bool,
    /// The lock for changing the corpus that this file is a copy of.
    hold: Option<Arc<Hold>>,
}

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
        if version < schema::VERSION {
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
            let has_chunks = schema::check(&database)? >= schema::CHUNKED;
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

    /// Opens the bytes of a database for reading; `path` is for errors.
    pub(crate) fn open_in_memory(path: &Path, bytes: &[u8]) -> Result<Self> {
        let connection = Connection::open_in_memory().and_then(|mut connection| {
            connection.deserialize_read_exact("main", bytes, bytes.len(), true)?;
            Ok(connection)
        });
        Self::unchanging(connection, path)
    }

    fn unchanging(connection: rusqlite::Result<Connection>, path: &Path) -> Result<Self> {
        let database = Self::with(connection, path)?;
        schema::supplement(&database)?;
        let has_chunks = schema::check(&database)? >= schema::CHUNKED;
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
        Ok(Self { connection, path: path.to_path_buf(), has_chunks: true, hold: None })
    }

    /// The same database, which sends its changes to PostgreSQL for all clients that share the corpus.
    pub(crate) fn sending(self, hold: Option<Arc<Hold>>) -> Self {
        Self { hold, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn has_chunks(&self) -> bool {
        self.has_chunks
    }

    /// Copies the database, as it is at this moment, to a new file that its owner only may read. Writers may go on
    /// meanwhile. The file appears complete, even if this is interrupted.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::NotPermitted`], [`Error::Io`] of the new file.
    pub(crate) fn back_up(&self, to: &Path) -> Result<()> {
        self.copy(to, |_| Ok(()))
    }

    /// The same, with a change of the copy before it appears.
    pub(crate) fn copy(&self, to: &Path, change: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let aside = to.with_extension("new");
        delete_file(&aside).and_then(|()| private::create(&aside)).map_err(|source| Error::io(&aside, source))?;
        let copied = || -> Result<()> {
            let mut copy = Self::connect(&aside, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            // All pages in one step, which is one read transaction: other steps begin anew after every change.
            let step = |copy: &mut Connection| Backup::new(&self.connection, copy)?.step(-1).map(drop);
            step(&mut copy.connection).map_err(|source| Error::sqlite(&aside, source))?;
            // The mode of the log is copied too; a single file needs no log.
            copy.batch("PRAGMA journal_mode = DELETE;")?;
            change(&copy)?;
            copy.connection.close().map_err(|(_, source)| Error::sqlite(&aside, source))
        };
        let placed = copied().and_then(|()| {
            let synced = File::open(&aside).and_then(|file| file.sync_all());
            let moved = synced.and_then(|()| fs::rename(&aside, to)).and_then(|()| private::sync_name(to));
            moved.map_err(|source| Error::io(to, source))
        });
        if placed.is_err() {
            let _kept_error = delete_file(&aside);
        }
        placed
    }

    /// The error for inconsistent content.
    pub(crate) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::Damaged { path: self.path.clone(), what: what.into() }
    }

    /// Runs `work` in one durable transaction that commits completely or not at all. For a shared corpus, the change is
    /// committed in PostgreSQL before it is committed here.
    pub(crate) fn transact<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let transaction = self.named(self.connection.unchecked_transaction())?;
        let value = work()?;
        let hold = self.hold.as_ref().map(|hold| Ok(shared::has_changes(self)?.then_some(hold)));
        let hold = hold.transpose()?.flatten();
        hold.map_or(Ok(()), |hold| shared::send(hold, self))?;
        match (self.named(transaction.commit()), hold) {
            (Err(source), Some(hold)) => {
                Err(Error::CopyBehind { place: hold.place().to_owned(), source: Box::new(source) })
            }
            (committed, _) => committed.map(|()| value),
        }
    }

    /// Runs `work` that copies rows unchanged from PostgreSQL: triggers and foreign keys do not act on them here.
    pub(crate) fn verbatim<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let follow = |on| {
            let what = [DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER];
            what.into_iter().try_for_each(|what| self.connection.set_db_config(what, on).map(drop))
        };
        self.named(follow(false))?;
        let done = work();
        self.named(follow(true))?;
        done
    }

    /// Checkpoints the write-ahead log and truncates it, so that deleted data is no longer on the disk. A program that
    /// bypasses our locks, such as a backup, delays this until the file is closed.
    pub(crate) fn empty_log(&self) -> Result<()> {
        self.number("PRAGMA wal_checkpoint(TRUNCATE)").map(drop)
    }

    /// Runs statements without parameters or results.
    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.named(self.connection.execute_batch(sql))
    }

    /// Runs one statement; returns the number of changed rows.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.named(self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(params)))
    }

    /// Inserts one row; returns its id.
    pub(crate) fn insert(&self, sql: &str, params: impl Params) -> Result<i64> {
        self.named(self.connection.prepare_cached(sql).and_then(|mut statement| statement.insert(params)))
    }

    /// Reads all rows.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.named(
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.query_map(params, read)?.collect()),
        )
    }

    /// Reads rows one by one and passes them to a function.
    pub(crate) fn each<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.named(self.connection.prepare_cached(sql))?;
        let mut rows = self.named(statement.query(params))?;
        while let Some(row) = self.named(rows.next())? {
            each(self.named(read(row))?)?;
        }
        Ok(())
    }

    /// Reads the first row, if any.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.named(
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.query_row(params, read).optional()),
        )
    }

    /// Reads the single number that a query without parameters returns.
    pub(crate) fn number(&self, sql: &str) -> Result<i64> {
        self.named(self.connection.query_row(sql, [], |row| row.get(0)))
    }

    /// Reads a range of bytes of one text or blob without loading all of it. A missing row is an error (damage).
    pub(crate) fn slice(
        &self,
        table: &str,
        column: &str,
        id: i64,
        start_byte: u32,
        length_bytes: usize,
    ) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length_bytes];
        let blob = match self.connection.blob_open("main", table, column, id, true) {
            Err(rusqlite::Error::SqliteFailure(failure, what)) if failure.extended_code == ffi::SQLITE_ERROR => {
                return Err(self.damaged(what.unwrap_or_else(|| format!("no {table} {id}"))));
            }
            opened => self.named(opened)?,
        };
        self.named(blob.read_at_exact(&mut bytes, start_byte as usize))?;
        Ok(bytes)
    }

    /// The text in a column of one row, in pieces of whole characters.
    pub(crate) fn column_pieces<'a>(
        &'a self,
        table: &str,
        column: &str,
        id: i64,
    ) -> Result<impl Iterator<Item = Result<Cow<'a, str>>>> {
        let blob = self.named(self.connection.blob_open("main", table, column, id, true))?;
        let mut start = 0;
        Ok(std::iter::from_fn(move || {
            let length = PIECE_BYTES.min(blob.len() - start);
            let mut bytes = vec![0; length];
            let read = self.named(blob.read_at_exact(&mut bytes, start)).and_then(|()| {
                let whole = match str::from_utf8(&bytes) {
                    Err(error) if error.error_len().is_none() && start + length < blob.len() => error.valid_up_to(),
                    _ => length,
                };
                bytes.truncate(whole);
                start += whole;
                String::from_utf8(bytes).map_err(|_| self.damaged(format!("{table} {id} has a text that is none")))
            });
            (length > 0).then_some(read.map(Cow::Owned))
        }))
    }

    fn named<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|source| Error::sqlite(&self.path, source))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({})", self.path.display())
    }
}

/// The path of the backup that is made before a file of an older version is upgraded.
fn earlier(path: &Path, version: i64) -> PathBuf {
    path.with_extension(format!("{EARLIER}{version}.sqlite"))
}

/// Deletes the backups of older versions in the folder of a corpus.
pub(crate) fn delete_earlier(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.strip_prefix("memory.").is_some_and(|rest| rest.starts_with(EARLIER)) {
            delete_file(&path).map_err(|source| Error::io(&path, source))?;
        }
    }
    Ok(())
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
    use super::immutable_uri;
    use crate::{Corpora, Error, Layer, Meta, NewDocument, NewPassage, Result};
    use std::path::Path;

    #[test]
    fn a_full_disk_is_named_and_changes_nothing() -> Result<()> {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let mut writer = Corpora::new(folder.path()).create("full")?;
        let pages = writer.database.number("PRAGMA page_count")? + 4;
        writer.database.number(&format!("PRAGMA max_page_count = {pages}"))?;
        let passages = [NewPassage { layer: Layer::Page, bytes: 0..5, tokens: 1, meta: Meta::default() }];
        let small = NewDocument { path: "small", kind: "text", title: "", text: "small", passages: &passages };
        writer.put_document(&small)?;
        let before = writer.digest()?;
        let put = writer.put_document(&NewDocument { path: "large", text: &"large".repeat(10_000), ..small });
        assert!(matches!(put, Err(Error::DiskFull { .. })), "{put:?}");
        assert_eq!(writer.digest()?, before);
        writer.put_document(&NewDocument { path: "small too", ..small })?;
        writer.verify()
    }

    #[test]
    fn a_path_becomes_a_uri() {
        let check = |path: &str, uri: &str| assert_eq!(immutable_uri(Path::new(path)), uri);
        check("/a/b.sqlite", "file:/a/b.sqlite?immutable=1");
        check("/a b/c?d#e%f/é", "file:/a%20b/c%3Fd%23e%25f/%C3%A9?immutable=1");
    }
}
