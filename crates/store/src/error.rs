//! The errors of the store, grouped by cause: the caller, the machine, the corpus, the file, a library.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

use crate::{DerivedId, DocId, Holder, PassageId};

/// The result type of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// The original error of another library.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// All errors of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Caused by the caller.
    #[error(
        "`{name}` cannot name a corpus: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a letter or digit"
    )]
    InvalidName { name: String },
    #[error("a title has 1 to {most} characters, none of them a control character; this one has {chars}")]
    InvalidTitle { chars: usize, most: usize },
    #[error("there is no corpus `{name}`{}", suggest(nearest))]
    UnknownCorpus { name: String, nearest: Vec<String> },
    #[error("the corpus `{name}` exists already")]
    CorpusExists { name: String },
    #[error("the corpus `{name}` is in use by {}", describe(holder.as_ref()))]
    CorpusBusy { name: String, holder: Option<Holder> },
    #[error("there is no document {0}")]
    UnknownDocument(DocId),
    #[error("there is no passage {0}")]
    UnknownPassage(PassageId),
    #[error("there is no derived text {0}")]
    UnknownDerived(DerivedId),
    #[error("a `{kind}` comes without a passage to rest on")]
    NoSource { kind: String },
    #[error("the text of {document} has {bytes} bytes; at most {limit_bytes} can be kept")]
    TextTooLong { document: String, bytes: usize, limit_bytes: usize },
    #[error("cannot read the text of {document}")]
    Unreadable { document: String, source: io::Error },
    #[error("{document} was changed while it was read")]
    TextChanged { document: String },
    #[error("bytes {start_byte}..{end_byte} are not a range of whole characters in {document}")]
    BadSpan { document: String, start_byte: usize, end_byte: usize },
    #[error("a vector of `{embedder}` is refused: {problem}")]
    BadVector { embedder: String, problem: VectorProblem },

    #[error("this is no address of a database: {problem}")]
    Address { problem: String },

    // Caused by the machine.
    #[error("the disk is full, nothing was changed: {}", path.display())]
    DiskFull { path: PathBuf, source: Cause },
    #[error("PostgreSQL at {place} failed: {source}")]
    Postgres { place: String, source: Cause },
    #[error("PostgreSQL at {place} has the change, but the copy here could not take it: {source}")]
    CopyBehind { place: String, source: Box<Error> },
    #[error(
        "the corpus `{name}` in PostgreSQL at {place} was changed by another process meanwhile; nothing was changed"
    )]
    Overtaken { name: String, place: String },
    #[error("another process keeps {} locked; nothing was changed", path.display())]
    Locked { path: PathBuf, source: Cause },
    #[error("no permission to open or change {}", path.display())]
    NotPermitted { path: PathBuf, source: Cause },
    #[error("cannot read or write {}", path.display())]
    Io { path: PathBuf, source: io::Error },

    /// A bundle with corpora was altered, or cannot be read.
    #[error(transparent)]
    Bundle(bundle::Error),

    // Caused by the state of the corpus.
    #[error("the corpus `{name}` here has another past than the corpus `{name}` in PostgreSQL at {place}")]
    Differs { name: String, place: String },
    #[error("the corpus `{name}` in PostgreSQL at {place} has schema {found}, this memlocal knows {known}")]
    OtherSchema { name: String, place: String, found: i64, known: i64 },

    // Caused by the file.
    #[error("{} exists already", path.display())]
    FileExists { path: PathBuf },
    #[error("{} is not a memlocal corpus", path.display())]
    NotACorpus { path: PathBuf },
    #[error("{} was written by a newer memlocal (schema {found}, this one knows {known})", path.display())]
    NewerSchema { path: PathBuf, found: i64, known: i64 },
    #[error("{} was not closed cleanly; open it once where it can be written", path.display())]
    Unrecovered { path: PathBuf },
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },

    // Errors of libraries.
    #[error("SQLite failed on {}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error("the vector index failed: {what}")]
    Index { what: String },
}

/// Why a vector is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VectorProblem {
    #[error("it has {found} dimensions instead of {expected}")]
    Dimensions { expected: usize, found: usize },
    #[error("it contains NaN or an infinity")]
    NotFinite,
    #[error("it has no length")]
    Zero,
    #[error("its span is outside the passage")]
    OutsidePassage,
    #[error("the passage comes without any")]
    NoParts,
}

impl Error {
    /// Converts an I/O error on `path`.
    pub fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path, source: source.into() },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotPermitted { path, source: source.into() }
            }
            _ => Self::Io { path, source },
        }
    }

    /// The file that failed, if it is one file that did.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::DiskFull { path, .. }
            | Self::NotPermitted { path, .. }
            | Self::Locked { path, .. }
            | Self::Io { path, .. }
            | Self::Damaged { path, .. }
            | Self::Database { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Converts an error of `SQLite` on the database at `path`.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as Sqlite;
        let path = path.to_path_buf();
        match &source {
            Sqlite::FromSqlConversionFailure(..)
            | Sqlite::InvalidColumnType(..)
            | Sqlite::IntegralValueOutOfRange(..)
            | Sqlite::Utf8Error(..)
            | Sqlite::BlobSizeError => Self::Damaged { path, what: source.to_string() },
            Sqlite::SqlInputError { msg, .. } | Sqlite::SqliteFailure(_, Some(msg)) if names_what_is_missing(msg) => {
                Self::Damaged { path, what: source.to_string() }
            }
            // `SQLite` could not grow its shared-memory file beside the database.
            Sqlite::SqliteFailure(failure, _) if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
                Self::DiskFull { path, source: source.into() }
            }
            _ => match source.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => Self::DiskFull { path, source: source.into() },
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    Self::Locked { path, source: source.into() }
                }
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                    Self::NotPermitted { path, source: source.into() }
                }
                Some(ErrorCode::NotADatabase) => Self::NotACorpus { path },
                Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, what: source.to_string() },
                _ => Self::Database { path, source },
            },
        }
    }
}

/// Whether `SQLite` says that a statement names a table or column that the file does not have: the schema is damaged, since
/// statements are prepared only on files of a known version.
fn names_what_is_missing(message: &str) -> bool {
    message.starts_with("no such ") || message.contains(" has no column named ")
}

fn suggest(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; is it `{}`?", names.join("` or `")),
    }
}

fn describe(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}
