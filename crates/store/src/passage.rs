//! Passages: the spans of documents that are retrieved. Their text is a slice of the document's text and is not stored
//! separately.

use std::ops::Range;

use rusqlite::{Params, Row, params};

use crate::{Corpus, DocId, Error, Layer, PassageId, Result, Span};

/// A stored passage, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub id: PassageId,
    pub document: DocId,
    pub layer: Layer,
    /// Its index among the passages of its layer in its document, from 0.
    pub ordinal: u32,
    pub span: Span,
    /// As counted by the code that divided the document.
    pub tokens: u32,
    pub meta: Meta,
}

/// The source's metadata of a passage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Its name in the source, such as "D1:3" or a heading.
    pub label: Option<String>,
    /// When it was said or written, in the source's format.
    pub time: Option<String>,
    pub speaker: Option<String>,
}

/// A passage to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPassage {
    pub layer: Layer,
    /// Its byte range in the document's text.
    pub bytes: Range<usize>,
    pub tokens: u32,
    pub meta: Meta,
}

const COLUMNS: &str = "
SELECT id, document, layer, ordinal, start_char, end_char, start_byte, end_byte, tokens, label, time, speaker
FROM passage";

impl Corpus {
    /// One passage.
    ///
    /// # Errors
    /// [`Error::UnknownPassage`], [`Error::Damaged`].
    pub fn passage(&self, id: PassageId) -> Result<Passage> {
        let row = self.database.row(&format!("{COLUMNS} WHERE id = ?"), [id], read)?;
        row.ok_or_else(|| self.database.missing("passage", id.0, Error::UnknownPassage(id)))
    }

    /// All passages of a layer in the order of their ids.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn passages(&self, layer: Layer) -> Result<Vec<Passage>> {
        self.passages_where("WHERE layer = ? ORDER BY id", [layer])
    }

    /// The number of passages of a layer. It reads no passage.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn count(&self, layer: Layer) -> Result<usize> {
        let count = "SELECT count(*) FROM passage WHERE layer = ?";
        Ok(self.database.row(count, [layer], |row| row.get::<_, u32>(0))?.unwrap_or(0) as usize)
    }

    /// The passages of one layer of a document in the order of the text.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn passages_of(&self, document: DocId, layer: Layer) -> Result<Vec<Passage>> {
        self.passages_where("WHERE document = ? AND layer = ? ORDER BY ordinal", params![document, layer])
    }

    /// The passages that an SQL clause selects.
    pub(crate) fn passages_where(&self, clause: &str, params: impl Params) -> Result<Vec<Passage>> {
        self.database.rows(&format!("{COLUMNS} {clause}"), params, read)
    }

    pub(crate) fn misplaced(&self, passage: &Passage) -> Error {
        self.database.damaged(format!("passage {} is not in its document", passage.id))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Passage> {
    Ok(Passage {
        id: row.get(0)?,
        document: row.get(1)?,
        layer: row.get(2)?,
        ordinal: row.get(3)?,
        span: Span { start_char: row.get(4)?, end_char: row.get(5)?, start_byte: row.get(6)?, end_byte: row.get(7)? },
        tokens: row.get(8)?,
        meta: Meta { label: row.get(9)?, time: row.get(10)?, speaker: row.get(11)? },
    })
}
