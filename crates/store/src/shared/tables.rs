//! The tables of shared corpora, and reading from them.

use postgres::Client;
use postgres::error::SqlState;

use crate::Digest;
use crate::shared::session::MAKING_TABLES;

/// `schema` is the version of the tables in schema.rs, whose rows these are; a null row was deleted. When a corpus is
/// removed, its name can be reused, but its id is kept, so that copies elsewhere detect the removal.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS memlocal_corpus (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    space text NOT NULL,
    name text NOT NULL,
    schema bigint NOT NULL,
    removed boolean NOT NULL DEFAULT false,
    documents bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    pending bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX IF NOT EXISTS memlocal_corpus_name ON memlocal_corpus (space, name) WHERE NOT removed;
CREATE TABLE IF NOT EXISTS memlocal_change (
    corpus bigint REFERENCES memlocal_corpus,
    version bigint,
    digest bytea NOT NULL,
    PRIMARY KEY (corpus, version)
);
CREATE TABLE IF NOT EXISTS memlocal_row (
    corpus bigint REFERENCES memlocal_corpus,
    tab text,
    key bytea,
    piece integer,
    version bigint NOT NULL,
    row bytea,
    PRIMARY KEY (corpus, tab, key, piece)
);
CREATE INDEX IF NOT EXISTS memlocal_row_version ON memlocal_row (corpus, version);
";

pub(crate) type Outcome<T> = Result<T, postgres::Error>;

/// Runs in its own transaction, because checking whether an index exists locks its table.
pub(crate) fn make_tables(client: &mut Client) -> Outcome<()> {
    if client.query_one("SELECT to_regclass('memlocal_row') IS NOT NULL", &[])?.get(0) {
        return Ok(());
    }
    let mut making = client.transaction()?;
    making.batch_execute(MAKING_TABLES)?;
    making.batch_execute(TABLES)?;
    making.commit()
}

/// `None` if the tables have not been created yet.
pub(crate) fn if_tables<T>(result: Outcome<T>) -> Outcome<Option<T>> {
    match result {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        result => result.map(Some),
    }
}

pub(crate) fn digest(bytes: Option<Vec<u8>>) -> Option<Digest> {
    bytes.and_then(|bytes| bytes.try_into().ok()).map(Digest)
}
