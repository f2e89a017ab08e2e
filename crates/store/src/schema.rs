//! The tables of `memory.sqlite`, and how a file is known to be ours.

use crate::database::Database;
use crate::{Error, Result};

/// The version of the tables below, kept in `PRAGMA user_version`.
const VERSION: i64 = 1;

/// "meml" in `PRAGMA application_id` marks the file as ours.
const APPLICATION_ID: i64 = 0x6d65_6d6c;

/// Ids are never used again, so the order of passage ids is the order in which they were remembered. Positions are
/// offsets into `document.text`; `vector.key` is a digest of the row (see vector.rs).
const TABLES: &str = "
CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    digest BLOB NOT NULL,
    created INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;
CREATE TABLE passage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE,
    layer TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    start_char INTEGER NOT NULL,
    end_char INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    label TEXT,
    time TEXT,
    speaker TEXT,
    UNIQUE (document, layer, ordinal)
) STRICT;
CREATE INDEX passage_by_layer ON passage (layer, id);
CREATE TABLE note (
    passage INTEGER NOT NULL REFERENCES passage ON DELETE CASCADE,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    PRIMARY KEY (passage, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE embedder (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    dims INTEGER NOT NULL
) STRICT;
CREATE TABLE vector (
    passage INTEGER NOT NULL REFERENCES passage ON DELETE CASCADE,
    embedder INTEGER NOT NULL REFERENCES embedder,
    part INTEGER NOT NULL,
    key INTEGER NOT NULL,
    start_char INTEGER NOT NULL,
    end_char INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX vector_by_passage ON vector (passage, embedder, part, key);
";

/// Creates the tables, wholly or not at all.
pub(crate) fn install(database: &Database) -> Result<()> {
    database.transact(|| {
        database.batch(TABLES)?;
        database.batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"))
    })
}

/// Refuses files that this version does not understand.
pub(crate) fn check(database: &Database) -> Result<()> {
    let path = || database.path().to_path_buf();
    let application = database.number("PRAGMA application_id")?;
    let version = database.number("PRAGMA user_version")?;
    if application != APPLICATION_ID || version < VERSION {
        return Err(Error::NotACorpus { path: path() });
    }
    if version > VERSION {
        return Err(Error::NewerSchema { path: path(), found: version, known: VERSION });
    }
    Ok(())
}
