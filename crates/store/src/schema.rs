//! The tables of `memory.sqlite`, and how a file is recognised as a corpus.

use crate::database::Database;
use crate::version::{CHUNKED, VERSION};
use crate::{DocId, Error, Result, shared, text};

/// "meml", stored in `PRAGMA application_id` to identify the file format.
const APPLICATION_ID: i64 = 0x6d65_6d6c;

/// Ids are never reused, so the order of passage ids is the order of insertion. Positions are offsets into the text of
/// a document; `vector.key` is a digest of the row (see vector.rs). An upgraded file has these columns in this order too:
/// rows of shared corpora are exchanged by position.
const TABLES: &str = "
CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
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

/// What version 2 added. `derived_vector.key` is a digest of the row, as `vector.key` is.
const DERIVED: &str = "
CREATE TABLE derived (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key BLOB NOT NULL,
    text TEXT NOT NULL,
    bond TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    UNIQUE (kind, key)
) STRICT;
CREATE TABLE derived_source (
    derived INTEGER NOT NULL REFERENCES derived ON DELETE CASCADE,
    passage INTEGER NOT NULL REFERENCES passage ON DELETE CASCADE,
    PRIMARY KEY (derived, passage)
) STRICT, WITHOUT ROWID;
CREATE TABLE derived_vector (
    derived INTEGER NOT NULL REFERENCES derived ON DELETE CASCADE,
    embedder INTEGER NOT NULL REFERENCES embedder,
    key INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (derived, embedder)
) STRICT;
";

/// What version 3 added: the text of each document in chunks (text.rs), in place of a column `document.text`.
const CHUNKS: &str = "
CREATE TABLE document_text (
    document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE,
    start_byte INTEGER NOT NULL,
    start_char INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (document, start_byte)
) STRICT;
";

/// Deletes a derived text according to its bond: with its first deleted source or with its last.
const BONDS: &str = "
CREATE INDEX derived_source_by_passage ON derived_source (passage);
CREATE TRIGGER derived_bond AFTER DELETE ON derived_source BEGIN
    DELETE FROM derived WHERE id = OLD.derived
    AND (bond = 'all' OR NOT EXISTS (SELECT 1 FROM derived_source WHERE derived = OLD.derived));
END;
";

/// Creates the tables, all or none.
pub(crate) fn install(database: &Database) -> Result<()> {
    database.transact(|| {
        database.batch(TABLES)?;
        database.batch(DERIVED)?;
        database.batch(BONDS)?;
        database.batch(CHUNKS)?;
        database.batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"))
    })
}

/// Upgrades the tables of an older version, all or none.
pub(crate) fn upgrade(database: &Database) -> Result<()> {
    database.transact(|| {
        let version = check(database)?;
        if version < 2 {
            database.batch(DERIVED)?;
            database.batch(BONDS)?;
        }
        if version < CHUNKED {
            divide_texts(database)?;
        }
        database.batch(&format!("PRAGMA user_version = {VERSION};"))
    })
}

/// Moves the texts of documents into chunks. The columns that are left keep their order.
fn divide_texts(database: &Database) -> Result<()> {
    database.batch(CHUNKS)?;
    for document in database.rows("SELECT id FROM document ORDER BY id", [], |row| row.get::<_, DocId>(0))? {
        text::store(database, document, database.column_pieces("document", "text", document.0)?)?;
    }
    database.batch("ALTER TABLE document DROP COLUMN text;")?;
    shared::watch_texts(database)
}

/// Gives a reader the tables that an older file lacks, empty and outside the file. Texts are read from either place.
pub(crate) fn supplement(database: &Database) -> Result<()> {
    if check(database)? < 2 {
        database.batch("PRAGMA temp_store = MEMORY;")?;
        database.batch(&DERIVED.replace("CREATE TABLE", "CREATE TEMP TABLE"))?;
    }
    Ok(())
}

/// The version of a file; an error if this program does not support it.
pub(crate) fn check(database: &Database) -> Result<i64> {
    let path = || database.path().to_path_buf();
    let application = database.number("PRAGMA application_id")?;
    let version = database.number("PRAGMA user_version")?;
    if application != APPLICATION_ID || version < 1 {
        return Err(Error::NotACorpus { path: path() });
    }
    if version > VERSION {
        return Err(Error::NewerSchema { path: path(), found: version, known: VERSION });
    }
    Ok(version)
}
