//! The `SQLite` connection of a corpus: statements, transactions, and its failures as errors.

mod opening;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Params, Row, ffi};

pub(crate) use opening::beside;

use crate::{Error, Result};

/// How much of a text is read at once.
const PIECE_BYTES: usize = 1 << 20;

/// The file with the authoritative data, or with a copy of it where the corpus is shared.
pub(crate) const DATABASE_FILE: &str = "memory.sqlite";

/// An open `memory.sqlite`.
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
    /// Whether texts are in chunks: in every file but older ones that are open for reading.
    has_chunks: bool,
    /// Where changes are committed first, if the file is a copy of a shared corpus.
    origin: Option<Arc<dyn Origin>>,
}

/// The corpus that a file is a copy of: changes are committed there before they are committed in the file.
pub(crate) trait Origin {
    /// Commits the changes of the open transaction; returns where, or `None` if there are no changes.
    ///
    /// # Errors
    /// If they cannot be committed there; they must not be committed in the file then.
    fn commit(&self, database: &Database) -> Result<Option<String>>;
}

impl Database {
    /// The same database, whose changes are committed in `origin` first.
    pub(crate) fn with_origin(self, origin: Option<Arc<dyn Origin>>) -> Self {
        Self { origin, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn has_chunks(&self) -> bool {
        self.has_chunks
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
        let place = self.origin.as_ref().map_or(Ok(None), |origin| origin.commit(self))?;
        match (self.named(transaction.commit()), place) {
            (Err(source), Some(place)) => Err(Error::CopyBehind { place, source: Box::new(source) }),
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

    /// The error for an id that a search in this table does not find: `unknown`, or damage if a scan finds it.
    pub(crate) fn missing(&self, table: &str, id: i64, unknown: Error) -> Error {
        match self.number(&format!("SELECT count(*) FROM {table} NOT INDEXED WHERE +id = {id}")) {
            Ok(0) => unknown,
            Ok(_) => self.damaged(format!("row {id} of {table} is out of order")),
            Err(error) => error,
        }
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

#[cfg(test)]
mod tests {
    use crate::{Corpora, Error, Layer, Meta, NewDocument, NewPassage, Result};

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
}
