//! Documents: immutable texts with their origin. A changed text is a new document at the same path.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use rusqlite::{Row, params};

use crate::cut::Cut;
use crate::derived_files::Removal;
use crate::lock::Lock;
use crate::text::{self, Positions, Text, TextDigest};
use crate::{Corpus, Digest, DocId, Error, NewPassage, Result, Writer, private};

/// The longest text of a document, as positions have 32 bits.
const TEXT_LIMIT_BYTES: usize = u32::MAX as usize;

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
        self.is_of_text(kind, title, &text).unwrap_or(false)
    }

    /// The same for a text that is read in pieces.
    ///
    /// # Errors
    /// Those of reading the text.
    pub fn is_of_text(&self, kind: &str, title: &str, text: &dyn Text) -> io::Result<bool> {
        let mut digest = TextDigest::new(kind, title, text.len_bytes());
        for piece in text.pieces() {
            digest.add(&piece?);
        }
        Ok(self.digest == digest.finish())
    }

    /// The name of the file in words: without folders, extension and separators.
    pub fn name(&self) -> String {
        in_words(self.path.rsplit(['/', '\\']).next().unwrap_or(&self.path))
    }

    /// Its path without the folders above its own, which are those of the machine.
    pub fn short_path(&self) -> &str {
        let start = self.path.rmatch_indices(['/', '\\']).nth(1).map_or(0, |(at, _)| at + 1);
        &self.path[start..]
    }

    /// What it is searched by, beside its text: the folder and the name, as written and in words, and the title.
    pub(crate) fn searched_name(&self) -> String {
        let path = self.short_path();
        [path, &in_words(path), &self.title].join("\n")
    }
}

fn in_words(path: &str) -> String {
    let is_extension = |end: &str| (1..=5).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric());
    let name = path.rsplit_once('.').filter(|(_, end)| is_extension(end)).map_or(path, |(name, _)| name);
    name.replace(['-', '_'], " ")
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

/// A document to store, with its passages, whose text is read in pieces.
#[derive(Clone, Copy)]
pub struct NewText<'a> {
    pub path: &'a str,
    pub kind: &'a str,
    pub title: &'a str,
    /// Read twice.
    pub text: &'a dyn Text,
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

    /// Whether there is more than one document.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn has_several_documents(&self) -> Result<bool> {
        Ok(self.database.number("SELECT count(*) FROM (SELECT 1 FROM document LIMIT 2)")? > 1)
    }

    /// One document.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`], [`Error::Damaged`].
    pub fn document(&self, id: DocId) -> Result<Document> {
        let row = self.database.row(
            "SELECT id, path, kind, title, digest, created FROM document WHERE id = ?",
            [id],
            read,
        )?;
        row.ok_or_else(|| self.database.missing("document", id.0, Error::UnknownDocument(id)))
    }

    /// The document at `path`, if there is one.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn document_at(&self, path: &str) -> Result<Option<Document>> {
        self.database.row("SELECT id, path, kind, title, digest, created FROM document WHERE path = ?", [path], read)
    }
}

impl Writer {
    /// Stores a document and its passages in one transaction; [`Change`] describes how one at the same path is handled.
    /// If the text is unchanged, layers for which no passages are given are kept.
    ///
    /// # Errors
    /// [`Error::TextTooLong`], [`Error::BadSpan`], [`Error::DiskFull`]; nothing is changed then.
    pub fn put_document(&mut self, new: &NewDocument<'_>) -> Result<(DocId, Change)> {
        let NewDocument { path, kind, title, text, passages } = *new;
        self.put_text(&NewText { path, kind, title, text: &text, passages })
    }

    /// The same for a text that is read in pieces: its length does not matter for the memory that this needs.
    ///
    /// # Errors
    /// As [`put_document`](Self::put_document); [`Error::Unreadable`] when the text cannot be read,
    /// [`Error::TextChanged`] when it is another one the second time. Nothing is changed then.
    pub fn put_text(&mut self, new: &NewText<'_>) -> Result<(DocId, Change)> {
        if new.text.len_bytes() > TEXT_LIMIT_BYTES {
            return Err(Error::TextTooLong {
                document: new.path.to_owned(),
                bytes: new.text.len_bytes(),
                limit_bytes: TEXT_LIMIT_BYTES,
            });
        }
        let mut positions = Positions::new(new.passages.iter().map(|passage| passage.bytes.clone()));
        let digest = new.digest(|piece| positions.add(piece))?;
        let cut = Cut::of(new.path, &positions, new.passages)?;
        let mut removal = None;
        let done = self.database.transact(|| match self.document_at(new.path)? {
            None => Ok((self.insert_document(new, digest, &cut)?, Change::Added)),
            Some(old) if old.digest != digest => {
                removal = Some(Removal::begin(self.folder())?);
                self.forget_vectors(old.id)?;
                self.delete_document(old.id)?;
                Ok((self.insert_document(new, digest, &cut)?, Change::Replaced))
            }
            Some(old) => {
                let changed = self.put_cut(old.id, &cut)?;
                Ok((old.id, if changed { Change::Recut } else { Change::Unchanged }))
            }
        })?;
        removal.map_or(Ok(()), Removal::finish)?;
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
        let removal = Removal::begin(self.folder())?;
        self.database.transact(|| self.delete_document(id))?;
        removal.finish()?;
        // There are no readers that could be writing one.
        private::sweep_older(self.folder(), Duration::ZERO).map_err(|source| Error::io(self.folder(), source))?;
        self.database.empty_log()
    }

    fn insert_document(&self, new: &NewText<'_>, digest: Digest, cut: &Cut) -> Result<DocId> {
        let id = DocId(self.database.insert(
            "INSERT INTO document (path, kind, title, digest) VALUES (?, ?, ?, ?)",
            params![new.path, new.kind, new.title, digest.0],
        )?);
        let mut stored = new.new_digest();
        let pieces = new.pieces().inspect(|piece| {
            if let Ok(piece) = piece {
                stored.add(piece);
            }
        });
        text::store(&self.database, id, pieces)?;
        if stored.finish() != digest {
            return Err(Error::TextChanged { document: new.path.to_owned() });
        }
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

impl NewText<'_> {
    fn pieces(&self) -> impl Iterator<Item = Result<Cow<'_, str>>> {
        let unreadable = |source| Error::Unreadable { document: self.path.to_owned(), source };
        self.text.pieces().map(move |piece| piece.map_err(unreadable))
    }

    fn new_digest(&self) -> TextDigest {
        TextDigest::new(self.kind, self.title, self.text.len_bytes())
    }

    /// Reads the text, passes its pieces to `each`, and returns the document's digest.
    fn digest(&self, mut each: impl FnMut(&str)) -> Result<Digest> {
        let mut digest = self.new_digest();
        let mut bytes = 0;
        for piece in self.pieces() {
            let piece = piece?;
            bytes += piece.len();
            digest.add(&piece);
            each(&piece);
        }
        if bytes == self.text.len_bytes() {
            Ok(digest.finish())
        } else {
            Err(Error::TextChanged { document: self.path.to_owned() })
        }
    }
}
