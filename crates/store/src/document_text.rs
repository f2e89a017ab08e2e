//! Reading the texts of stored documents: a passage reads the chunks that it overlaps, and no operation needs a whole text
//! in memory unless its caller asks for it.

use std::borrow::Cow;
use std::ops::Range;

use rusqlite::params;

use crate::text::{TextDigest, number};
use crate::{Corpus, DocId, Document, Error, Result};

/// Reads the text of a stored document once, from its beginning, and checks its digest.
pub(crate) struct TextReader<'a> {
    corpus: &'a Corpus,
    document: &'a Document,
    digest: TextDigest,
    /// What was read and not yet dropped, and where it begins.
    buffer: String,
    start: usize,
}

impl<'a> TextReader<'a> {
    pub(crate) fn new(corpus: &'a Corpus, document: &'a Document) -> Result<Self> {
        let bytes = corpus.text_bytes(document.id)?;
        let digest = TextDigest::new(&document.kind, &document.title, bytes);
        Ok(Self { corpus, document, digest, buffer: String::new(), start: 0 })
    }

    /// Reads the next piece; none at the end.
    fn next(&mut self) -> Result<bool> {
        let piece = self.corpus.text_piece(self.document.id, self.start + self.buffer.len())?;
        if let Some(piece) = &piece {
            self.digest.add(piece);
            self.buffer.push_str(piece);
        }
        Ok(piece.is_some())
    }

    /// A range of the text; none if the text has no such range. What was read before `bytes.start` is dropped, so a
    /// range that begins before an earlier one is read anew.
    pub(crate) fn range(&mut self, bytes: &Range<usize>) -> Result<Option<Cow<'_, str>>> {
        if bytes.start < self.start {
            return Ok(self.corpus.text_range(self.document.id, bytes)?.map(Cow::Owned));
        }
        while self.start + self.buffer.len() < bytes.end {
            // Ranges may leave large parts of the text out.
            let unneeded = self.buffer.floor_char_boundary(bytes.start - self.start);
            self.buffer.drain(..unneeded);
            self.start += unneeded;
            if !self.next()? {
                return Ok(None);
            }
        }
        let (start, end) = (bytes.start - self.start, bytes.end.saturating_sub(self.start));
        Ok(self.buffer.get(start..end).map(Cow::Borrowed))
    }

    /// Reads the rest.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the text differs from what was stored.
    pub(crate) fn finish(mut self) -> Result<()> {
        loop {
            self.start += self.buffer.len();
            self.buffer.clear();
            if !self.next()? {
                break;
            }
        }
        self.corpus.check_digest(self.document, &self.digest)
    }
}

impl Corpus {
    /// The whole text of a document.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`]; [`Error::Damaged`] when it differs from what was stored.
    pub fn document_text(&self, id: DocId) -> Result<String> {
        let document = self.document(id)?;
        let mut text = String::with_capacity(self.text_bytes(id)?);
        while let Some(piece) = self.text_piece(id, text.len())? {
            text.push_str(&piece);
        }
        let mut digest = TextDigest::new(&document.kind, &document.title, text.len());
        digest.add(&text);
        self.check_digest(&document, &digest)?;
        Ok(text)
    }

    /// Reads the text of a document in pieces.
    ///
    /// # Errors
    /// [`Error::Damaged`] when it differs from what was stored.
    pub(crate) fn read_text(&self, document: &Document, mut each: impl FnMut(&str)) -> Result<()> {
        let mut digest = TextDigest::new(&document.kind, &document.title, self.text_bytes(document.id)?);
        for piece in self.text_pieces(document.id) {
            let piece = piece?;
            digest.add(&piece);
            each(&piece);
        }
        self.check_digest(document, &digest)
    }

    /// The text of a document in pieces, from its beginning; the digest is not checked.
    pub(crate) fn text_pieces(&self, id: DocId) -> impl Iterator<Item = Result<String>> + '_ {
        let mut start = 0;
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let piece = self.text_piece(id, start).transpose();
            start += piece.as_ref().map_or(0, |piece| piece.as_ref().map_or(0, String::len));
            is_over = !matches!(piece, Some(Ok(_)));
            piece
        })
    }

    /// A range of bytes of a document's text, without reading the rest; none if the text has no such range, or if
    /// its ends divide characters.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn text_range(&self, id: DocId, bytes: &Range<usize>) -> Result<Option<String>> {
        if bytes.is_empty() {
            return Ok(Some(String::new()));
        }
        if !self.database.has_chunks() {
            // A text has fewer than 2^32 bytes.
            let Ok(start) = u32::try_from(bytes.start) else { return Ok(None) };
            if bytes.end > self.text_bytes(id)? {
                return Ok(None);
            }
            let text = self.database.slice("document", "text", id.0, start, bytes.len())?;
            return Ok(String::from_utf8(text).ok());
        }
        let chunks = self.database.rows(
            "SELECT start_byte, text FROM document_text WHERE document = ?1 AND start_byte < ?3 AND start_byte >=
                 (SELECT max(start_byte) FROM document_text WHERE document = ?1 AND start_byte <= ?2)
             ORDER BY start_byte",
            params![id, number(bytes.start), number(bytes.end)],
            |row| Ok((row.get::<_, u32>(0)? as usize, row.get::<_, String>(1)?)),
        )?;
        let Some((first, _)) = chunks.first() else { return Ok(None) };
        let first = *first;
        let mut text = String::new();
        for (start, chunk) in chunks {
            if start != first + text.len() {
                return Err(self.torn(id));
            }
            text.push_str(&chunk);
        }
        Ok(text.get(bytes.start - first..bytes.end - first).map(str::to_owned))
    }

    /// The stored piece of a text that begins at a byte; none at the end of the text.
    fn text_piece(&self, id: DocId, start_byte: usize) -> Result<Option<String>> {
        if !self.database.has_chunks() {
            let whole = "SELECT text FROM document WHERE id = ?";
            let text = (start_byte == 0).then(|| self.database.row(whole, [id], |row| row.get(0))).transpose()?;
            return Ok(text.flatten().filter(|text: &String| !text.is_empty()));
        }
        let next = "SELECT start_byte, text FROM document_text WHERE document = ? AND start_byte >= ?
             ORDER BY start_byte LIMIT 1";
        let found = self.database.row(next, params![id, number(start_byte)], |row| {
            Ok((row.get::<_, u32>(0)? as usize, row.get::<_, String>(1)?))
        })?;
        match found {
            Some((start, text)) if start == start_byte && !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(self.torn(id)),
            None => Ok(None),
        }
    }

    /// The length of a document's text in bytes, without reading it; 0 of an unknown document.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn text_bytes(&self, id: DocId) -> Result<usize> {
        let length = if self.database.has_chunks() {
            "SELECT start_byte + octet_length(text) FROM document_text WHERE document = ?
             ORDER BY start_byte DESC LIMIT 1"
        } else {
            "SELECT octet_length(text) FROM document WHERE id = ?"
        };
        Ok(self.database.row(length, [id], |row| row.get::<_, u32>(0))?.unwrap_or(0) as usize)
    }

    fn check_digest(&self, document: &Document, digest: &TextDigest) -> Result<()> {
        if digest.finish() == document.digest {
            return Ok(());
        }
        Err(self.database.damaged(format!("the text of {} is not what was put in", document.path)))
    }

    fn torn(&self, id: DocId) -> Error {
        self.database.damaged(format!("a part of the text of document {id} is missing"))
    }
}
