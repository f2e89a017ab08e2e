//! Passages: the spans of documents that are retrieved. Their text is a slice of the document's text and is not stored
//! separately.

use std::fmt;
use std::ops::Range;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Params, Row, params};
use serde::{Deserialize, Serialize};

use crate::text::TextReader;
use crate::{Corpus, DocId, Error, Result, Span};

/// Identifies a passage in a corpus permanently: ids are never reused and increase in the order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PassageId(pub i64);

/// The ways of dividing a document into passages; a document can have several layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Layer {
    /// GAM's unit: one session of a conversation, or about 2,000 tokens of a text.
    Page,
    /// One utterance of a conversation.
    Turn,
    /// A few hundred tokens of a text.
    Chunk,
    /// MindGraph's unit: about 8,000 tokens of a text.
    Block,
}

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

/// The text under which a passage is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexText<'a> {
    /// Its own text.
    Content,
    /// The note of this name, if there is one, a line break, and its own text.
    NoteAndContent(&'a str),
}

const COLUMNS: &str = "
SELECT id, document, layer, ordinal, start_char, end_char, start_byte, end_byte, tokens, label, time, speaker
FROM passage";

impl Corpus {
    /// One passage.
    ///
    /// # Errors
    /// [`Error::UnknownPassage`].
    pub fn passage(&self, id: PassageId) -> Result<Passage> {
        let row = self.database.row(&format!("{COLUMNS} WHERE id = ?"), [id], read)?;
        row.ok_or(Error::UnknownPassage(id))
    }

    /// All passages of a layer in the order of their ids.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn passages(&self, layer: Layer) -> Result<Vec<Passage>> {
        self.passages_where("WHERE layer = ? ORDER BY id", [layer])
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

    /// The text of one passage.
    ///
    /// # Errors
    /// [`Error::UnknownPassage`]; [`Error::Damaged`] when its span is not in the document.
    pub fn passage_text(&self, id: PassageId) -> Result<String> {
        let passage = self.passage(id)?;
        let text = self.text_range(passage.document, &passage.span.bytes())?;
        text.ok_or_else(|| self.misplaced(&passage))
    }

    /// The text under which one passage is to be indexed.
    ///
    /// # Errors
    /// As [`passage_text`](Self::passage_text).
    pub fn index_text(&self, id: PassageId, text: IndexText<'_>) -> Result<String> {
        let content = self.passage_text(id)?;
        self.decorated(id, &content, text)
    }

    /// Passes the index texts of all passages of a layer to a function, reading each document once.
    pub(crate) fn each_index_text(
        &self,
        layer: Layer,
        text: IndexText<'_>,
        mut each: impl FnMut(PassageId, &str),
    ) -> Result<()> {
        for document in self.documents()? {
            let passages = self.passages_of(document.id, layer)?;
            if passages.is_empty() {
                continue;
            }
            let mut whole = TextReader::new(self, &document)?;
            for passage in passages {
                let content = whole.range(&passage.span.bytes())?.ok_or_else(|| self.misplaced(&passage))?;
                each(passage.id, &self.decorated(passage.id, &content, text)?);
            }
            whole.finish()?;
        }
        Ok(())
    }

    fn decorated(&self, id: PassageId, content: &str, text: IndexText<'_>) -> Result<String> {
        let note = match text {
            IndexText::Content => None,
            IndexText::NoteAndContent(name) => {
                self.database.row("SELECT text FROM note WHERE passage = ? AND name = ?", params![id, name], |row| {
                    row.get::<_, String>(0)
                })?
            }
        };
        Ok(note.map_or_else(|| content.to_owned(), |note| format!("{note}\n{content}")))
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

impl Layer {
    /// Its name in the database and in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Turn => "turn",
            Self::Chunk => "chunk",
            Self::Block => "block",
        }
    }
}

impl ToSql for Layer {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.as_str().to_sql()
    }
}

impl FromSql for Layer {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        let known = [Self::Page, Self::Turn, Self::Chunk, Self::Block];
        known.into_iter().find(|layer| layer.as_str() == name).ok_or(FromSqlError::InvalidType)
    }
}

impl fmt::Display for PassageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ToSql for PassageId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for PassageId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(Self)
    }
}
