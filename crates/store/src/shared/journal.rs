//! The tables of shared corpora in PostgreSQL: the sequence of changes of each corpus, and for each row the last change
//! that it was part of.
//!
//! A change has a number and a digest of itself and all changes before it, so that a copy with a diverged history is
//! detected. It does not keep its rows: `memlocal_row` has every row once, in its current state, or only its key if the
//! row was deleted. A client that has the changes up to some number fetches the rows of later ones; a removed text is
//! stored nowhere.

use crate::shared::copy::Copy;
use crate::shared::hold::{Hold, SharedName};
use crate::shared::session::Session;
use crate::shared::tables::{digest, if_tables};
use crate::{CorpusName, Counts, Digest, Result};

/// The state of a corpus in PostgreSQL, with the digests to compare with a copy, if there is one.
#[derive(Debug)]
pub(crate) struct Head {
    pub number: i64,
    pub id: String,
    pub schema: i64,
    pub version: i64,
    /// The digest of the copy's last change, if the corpus has that change.
    pub of_copy: Option<Digest>,
    /// The digest of the change after it.
    pub of_next: Option<Digest>,
}

/// One entry of the list of corpora.
pub(crate) struct Entry {
    pub name: CorpusName,
    pub counts: Counts,
}

/// The state of the corpus of a name, if it exists.
pub(crate) fn head(session: &Session, name: &SharedName, copy: Option<&Copy>) -> Result<Option<Head>> {
    let head = "
        SELECT number, id, schema, newest.version, of_copy.digest, of_next.digest
        FROM memlocal_corpus
        CROSS JOIN LATERAL
            (SELECT version FROM memlocal_change WHERE corpus = number ORDER BY version DESC LIMIT 1) AS newest
        LEFT JOIN memlocal_change AS of_copy ON of_copy.corpus = number AND of_copy.version = $3
        LEFT JOIN memlocal_change AS of_next ON of_next.corpus = number AND of_next.version = $3 + 1
        WHERE space = $1 AND name = $2 AND NOT removed";
    let (space, name) = (name.space.clone(), name.name.to_string());
    let version = copy.map_or(-1, |copy| copy.version);
    session.run(move |client| {
        let found = if_tables(client.query_opt(head, &[&space, &name, &version]))?.flatten();
        Ok(found.map(|row| Head {
            number: row.get(0),
            id: row.get(1),
            schema: row.get(2),
            version: row.get(3),
            of_copy: digest(row.get(4)),
            of_next: digest(row.get(5)),
        }))
    })
}

/// Whether a corpus existed and was removed.
pub(crate) fn was_removed(session: &Session, id: &str) -> Result<bool> {
    let (removed, id) = ("SELECT 1 FROM memlocal_corpus WHERE id = $1 AND removed", id.to_owned());
    session.run(move |client| Ok(if_tables(client.query_opt(removed, &[&id]))?.flatten().is_some()))
}

/// The corpora of a space, by name.
pub(crate) fn list(session: &Session, space: &str) -> Result<Vec<Entry>> {
    let corpora = "SELECT name, documents, passages, pending FROM memlocal_corpus
        WHERE space = $1 AND NOT removed ORDER BY name";
    let space = space.to_owned();
    let rows = session.run(move |client| Ok(if_tables(client.query(corpora, &[&space]))?.unwrap_or_default()))?;
    let count = |number: i64| number.cast_unsigned();
    let entry = |row: &postgres::Row| {
        let counts = Counts { documents: count(row.get(1)), passages: count(row.get(2)), pending: count(row.get(3)) };
        Ok(Entry { name: row.get::<_, &str>(0).parse()?, counts })
    };
    rows.iter().map(entry).collect()
}

/// A new unique corpus id.
pub(crate) fn new_id(session: &Session) -> Result<String> {
    session.run(|client| Ok(client.query_one("SELECT gen_random_uuid()::text", &[])?.get(0)))
}

/// Removes a corpus with all its rows, and the tables of its vectors.
pub(crate) fn remove(hold: &Hold, id: &str, vectors: &str) -> Result<()> {
    let (id, vectors) = (id.to_owned(), vectors.to_owned());
    hold.run(move |client| {
        let mut removing = client.transaction()?;
        let mark = "UPDATE memlocal_corpus SET removed = true WHERE id = $1 RETURNING number";
        let number: i64 = removing.query_one(mark, &[&id])?.get(0);
        removing.execute("DELETE FROM memlocal_row WHERE corpus = $1", &[&number])?;
        removing.execute("DELETE FROM memlocal_change WHERE corpus = $1", &[&number])?;
        for table in super::vectors::tables(&mut removing, &vectors)? {
            removing.batch_execute(&format!("DROP TABLE {table}"))?;
        }
        removing.commit()
    })
}
