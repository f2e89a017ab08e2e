//! Documents: immutable texts with their origin. A changed text is a new document at the same path.

use std::fmt;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use crate::cut::Cut;
use crate::digest::Framed;
use crate::lock::Lock;
use crate::{Corpus, Digest, Error, NewPassage, Result, Writer, cache};

/// The longest text of a document: 512 MiB. `SQLite`'s own limit for a row is just below 1 GB.
const TEXT_LIMIT_BYTES: usize = 512 << 20;

/// Identifies a document in a corpus permanently: ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocId(pub i64);

/// A stored document, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub id: DocId,
    /// Its origin; unique in a corpus.
    pub path: String,
    /// The kind of source: a format or a kind of conversation.
    pub kind: String,
    pub title: String,
    /// Over kind, title and text.
    pub digest: Digest,
    /// When it was stored, in seconds since 1970.
    pub created_seconds: i64,
}

impl Document {
    /// Whether it was stored with this kind, title and text; compares digests.
    pub fn is_of(&self, kind: &str, title: &str, text: &str) -> bool {
        self.digest == digest(kind, title, text)
    }
}

/// A document to store, with its passages.
#[derive(Clone, Copy, Debug)]
pub struct NewDocument<'a> {
    pub path: &'a str,
    pub kind: &'a str,
    pub title: &'a str,
    pub text: &'a str,
    /// Within each layer in the order of their ordinals.
    pub passages: &'a [NewPassage],
}

/// What putting a document changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// There was no document at its path.
    Added,
    /// Kind, title or text differ: the old document is deleted with all data derived from it.
    Replaced,
    /// The text is the same, but the cut of some layers changed; the notes and vectors of the other layers are kept.
    Recut,
    /// Nothing changed.
    Unchanged,
}

impl Corpus {
    /// All documents in the order of their ids.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn documents(&self) -> Result<Vec<Document>> {
        self.database.rows("SELECT id, path, kind, title, digest, created FROM document ORDER BY id", [], read)
    }

    /// One document.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`].
    pub fn document(&self, id: DocId) -> Result<Document> {
        let row = self.database.row(
            "SELECT id, path, kind, title, digest, created FROM document WHERE id = ?",
            [id],
            read,
        )?;
        row.ok_or(Error::UnknownDocument(id))
    }

    /// The document at `path`, if there is one.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn document_at(&self, path: &str) -> Result<Option<Document>> {
        self.database.row("SELECT id, path, kind, title, digest, created FROM document WHERE path = ?", [path], read)
    }

    /// The whole text of a document.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`]; [`Error::Damaged`] when it differs from what was stored.
    pub fn document_text(&self, id: DocId) -> Result<String> {
        let document = self.document(id)?;
        let text = self.database.row("SELECT text FROM document WHERE id = ?", [id], |row| row.get::<_, String>(0))?;
        let text = text.ok_or(Error::UnknownDocument(id))?;
        if digest(&document.kind, &document.title, &text) != document.digest {
            return Err(self.database.damaged(format!("the text of {} is not what was put in", document.path)));
        }
        Ok(text)
    }
}

impl Writer {
    /// Stores a document and its passages in one transaction; [`Change`] describes how one at the same path is handled.
    /// If the text is unchanged, layers for which no passages are given are kept.
    ///
    /// # Errors
    /// [`Error::TextTooLong`], [`Error::BadSpan`], [`Error::DiskFull`]; nothing is changed then.
    pub fn put_document(&mut self, new: &NewDocument<'_>) -> Result<(DocId, Change)> {
        if new.text.len() > TEXT_LIMIT_BYTES {
            return Err(Error::TextTooLong {
                document: new.path.to_owned(),
                bytes: new.text.len(),
                limit_bytes: TEXT_LIMIT_BYTES,
            });
        }
        let cut = Cut::of(new.path, new.text, new.passages)?;
        let digest = digest(new.kind, new.title, new.text);
        let done = self.database.transact(|| match self.document_at(new.path)? {
            None => Ok((self.insert_document(new, digest, &cut)?, Change::Added)),
            Some(old) if old.digest != digest => {
                cache::clear(self.folder())?;
                self.forget_vectors(old.id)?;
                self.delete_document(old.id)?;
                Ok((self.insert_document(new, digest, &cut)?, Change::Replaced))
            }
            Some(old) => {
                let changed = self.put_cut(old.id, &cut)?;
                Ok((old.id, if changed { Change::Recut } else { Change::Unchanged }))
            }
        })?;
        if done.1 == Change::Replaced {
            // A reader of the previous state may have derived a file from the old text since.
            cache::clear(self.folder())?;
        }
        Ok(done)
    }

    /// Removes a document and all data derived from it, including saved vector indexes and other files. There must be
    /// no readers meanwhile: data in a reader's snapshot cannot be overwritten.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`]; [`Error::CorpusBusy`] while the corpus has readers.
    pub fn remove_document(&mut self, id: DocId) -> Result<()> {
        self.document(id)?;
        let _alone_here = Lock::without_readers(self.folder(), self.name())?;
        let _alone = self.tables.as_ref().map(|tables| tables.hold.alone()).transpose()?;
        self.delete_graphs()?;
        cache::clear(self.folder())?;
        self.database.transact(|| self.delete_document(id))?;
        self.database.empty_log()
    }

    fn insert_document(&self, new: &NewDocument<'_>, digest: Digest, cut: &Cut) -> Result<DocId> {
        let id = DocId(self.database.insert(
            "INSERT INTO document (path, kind, title, text, digest) VALUES (?, ?, ?, ?, ?)",
            params![new.path, new.kind, new.title, new.text, digest.0],
        )?);
        self.put_cut(id, cut)?;
        Ok(id)
    }

    fn delete_document(&self, id: DocId) -> Result<()> {
        match self.database.execute("DELETE FROM document WHERE id = ?", [id])? {
            0 => Err(Error::UnknownDocument(id)),
            _ => Ok(()),
        }
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        id: row.get(0)?,
        path: row.get(1)?,
        kind: row.get(2)?,
        title: row.get(3)?,
        digest: Digest(row.get(4)?),
        created_seconds: row.get(5)?,
    })
}

fn digest(kind: &str, title: &str, text: &str) -> Digest {
    Framed::default().field(kind.as_bytes()).field(title.as_bytes()).field(text.as_bytes()).finish()
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ToSql for DocId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for DocId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(Self)
    }
}
