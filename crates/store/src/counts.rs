//! The numbers of items in a corpus.

use crate::Result;
use crate::database::Database;

/// The number of items in a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub documents: u64,
    pub passages: u64,
    /// Pages without a note.
    pub pending: u64,
}

/// Counts the items of a database.
pub(crate) fn counts_of(database: &Database) -> Result<Counts> {
    let count = |rows: &str| database.number(&format!("SELECT count(*) FROM {rows}")).map(i64::cast_unsigned);
    let unnoted = "layer = 'page' AND NOT EXISTS (SELECT 1 FROM note WHERE note.passage = passage.id)";
    Ok(Counts {
        documents: count("document")?,
        passages: count("passage")?,
        pending: count(&format!("passage WHERE {unnoted}"))?,
    })
}
