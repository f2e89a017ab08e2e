//! The texts of documents, in chunks: reading a passage reads the chunks that it overlaps, and no operation needs a
//! whole text in memory unless its caller asks for it.

use std::borrow::Cow;
use std::io;
use std::mem;
use std::ops::Range;

use rusqlite::params;

use crate::database::Database;
use crate::digest::Framed;
use crate::span::count_chars;
use crate::{Corpus, Digest, DocId, Document, Error, Result, Span};

/// The length of a stored chunk, at most; shorter by a few bytes where a character would be divided.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// A text that is read from its beginning, as often as needed, in pieces of whole characters.
pub trait Text {
    /// Its length in bytes.
    fn len_bytes(&self) -> usize;

    /// Its pieces in order, of any length.
    fn pieces(&self) -> Pieces<'_>;
}

/// The pieces of a [`Text`].
pub type Pieces<'a> = Box<dyn Iterator<Item = io::Result<Cow<'a, str>>> + 'a>;

impl Text for &str {
    fn len_bytes(&self) -> usize {
        self.len()
    }

    fn pieces(&self) -> Pieces<'_> {
        Box::new(std::iter::once(Ok(Cow::Borrowed(*self))))
    }
}

/// Divides a text into the chunks that are stored; they do not depend on its pieces.
#[derive(Default)]
struct Chunks {
    pending: String,
    start_byte: usize,
    start_char: usize,
}

impl Chunks {
    /// Takes the next piece and passes the finished chunks, with their first byte and character, to `put`.
    fn push(&mut self, piece: &str, mut put: impl FnMut(usize, usize, &str) -> Result<()>) -> Result<()> {
        self.pending.push_str(piece);
        let mut pending = mem::take(&mut self.pending);
        let mut rest = pending.as_str();
        while rest.len() >= CHUNK_BYTES {
            let (chunk, behind) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
            self.put(chunk, &mut put)?;
            rest = behind;
        }
        pending.drain(..pending.len() - rest.len());
        self.pending = pending;
        Ok(())
    }

    /// Passes the last chunk to `put`.
    fn finish(mut self, mut put: impl FnMut(usize, usize, &str) -> Result<()>) -> Result<()> {
        let last = mem::take(&mut self.pending);
        if last.is_empty() { Ok(()) } else { self.put(&last, &mut put) }
    }

    fn put(&mut self, chunk: &str, put: &mut impl FnMut(usize, usize, &str) -> Result<()>) -> Result<()> {
        put(self.start_byte, self.start_char, chunk)?;
        self.start_byte += chunk.len();
        self.start_char += count_chars(chunk.as_bytes());
        Ok(())
    }
}

/// Stores the pieces of a document's text.
pub(crate) fn store<'a>(
    database: &Database,
    document: DocId,
    pieces: impl Iterator<Item = Result<Cow<'a, str>>>,
) -> Result<()> {
    let insert = "INSERT INTO document_text (document, start_byte, start_char, text) VALUES (?, ?, ?, ?)";
    let mut put = |start_byte: usize, start_char: usize, chunk: &str| {
        database.insert(insert, params![document, number(start_byte), number(start_char), chunk]).map(drop)
    };
    let mut chunks = Chunks::default();
    for piece in pieces {
        chunks.push(&piece?, &mut put)?;
    }
    chunks.finish(put)
}

/// A position as `SQLite` stores it.
fn number(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// The digest of a document over kind, title and text, whose pieces are added one by one.
pub(crate) struct TextDigest(Framed);

impl TextDigest {
    pub(crate) fn new(kind: &str, title: &str, text_bytes: usize) -> Self {
        let mut digest = Framed::default();
        digest.field(kind.as_bytes()).field(title.as_bytes()).begin_field(text_bytes);
        Self(digest)
    }

    pub(crate) fn add(&mut self, piece: &str) {
        self.0.add_to_field(piece.as_bytes());
    }

    pub(crate) fn finish(&self) -> Digest {
        self.0.finish()
    }
}

/// Converts positions in a text from bytes to characters while its pieces are read.
pub(crate) struct Positions {
    /// Positions in bytes, ascending, each with its position in characters once it is known.
    wanted: Vec<(usize, Option<usize>)>,
    /// How many of them were passed.
    passed: usize,
    bytes: usize,
    chars: usize,
}

impl Positions {
    pub(crate) fn new(ranges: impl Iterator<Item = Range<usize>>) -> Self {
        let mut wanted: Vec<_> = ranges.flat_map(|range| [(range.start, None), (range.end, None)]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Self { wanted, passed: 0, bytes: 0, chars: 0 }
    }

    pub(crate) fn add(&mut self, piece: &str) {
        let mut counted = 0;
        while let Some((position, found)) = self.wanted.get_mut(self.passed)
            && *position <= self.bytes + piece.len()
        {
            let at = *position - self.bytes;
            self.chars += count_chars(&piece.as_bytes()[counted..at]);
            counted = at;
            *found = piece.is_char_boundary(at).then_some(self.chars);
            self.passed += 1;
        }
        self.chars += count_chars(&piece.as_bytes()[counted..]);
        self.bytes += piece.len();
    }

    /// The span of a range whose ends were given; none if it does not consist of whole characters of the text, or
    /// exceeds 4 GiB. An empty text has the position 0.
    pub(crate) fn span(&self, range: &Range<usize>) -> Option<Span> {
        let chars = |position: usize| {
            let found = self.wanted.binary_search_by_key(&position, |(byte, _)| *byte).ok()?;
            let chars = self.wanted[found].1.or_else(|| (position == 0).then_some(0))?;
            u32::try_from(chars).ok()
        };
        if range.start > range.end {
            return None;
        }
        Some(Span {
            start_char: chars(range.start)?,
            end_char: chars(range.end)?,
            start_byte: u32::try_from(range.start).ok()?,
            end_byte: u32::try_from(range.end).ok()?,
        })
    }
}

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
    pub fn text_pieces(&self, id: DocId) -> impl Iterator<Item = Result<String>> + '_ {
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
        if !self.database.has_chunks() {
            let start = u32::try_from(bytes.start).unwrap_or(u32::MAX);
            let text = self.database.slice("document", "text", id.0, start, bytes.len())?;
            return Ok(String::from_utf8(text).ok());
        }
        if bytes.is_empty() {
            return Ok(Some(String::new()));
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

    /// The length of a document's text.
    fn text_bytes(&self, id: DocId) -> Result<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_do_not_depend_on_pieces() {
        let text: String = (0..9_000).map(|i| ["né≈😀", "a", "\n"][i % 3]).collect();
        let cut = |piece_chars: usize| {
            let mut cut = Vec::new();
            let mut put = |byte, char, chunk: &str| {
                cut.push((byte, char, chunk.to_owned()));
                Ok(())
            };
            let mut chunks = Chunks::default();
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(piece_chars) {
                chunks.push(&piece.iter().collect::<String>(), &mut put).expect("nothing fails");
            }
            chunks.finish(put).expect("nothing fails");
            cut
        };
        let whole = cut(usize::MAX);
        assert!(whole.len() > 1 && whole.iter().all(|(_, _, chunk)| chunk.len() <= CHUNK_BYTES));
        assert_eq!(whole.iter().map(|(_, _, chunk)| chunk.as_str()).collect::<String>(), text);
        for (byte, char, _) in &whole {
            assert_eq!(text[..*byte].chars().count(), *char);
        }
        assert_eq!([cut(1), cut(777)], [whole.clone(), whole]);
    }

    #[test]
    fn positions_are_those_of_the_whole_text() {
        let text = "né≈😀 and so on ".repeat(20);
        let ranges: Vec<Range<usize>> =
            (0..text.len()).map(|start| start..(start * 7 % (text.len() + 3)).max(start)).collect();
        let offsets = crate::Offsets::new(&text);
        for piece_chars in [1, 5, 1000] {
            let mut positions = Positions::new(ranges.iter().cloned());
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(piece_chars) {
                positions.add(&piece.iter().collect::<String>());
            }
            for range in &ranges {
                assert_eq!(positions.span(range), offsets.span(range.clone()), "{range:?} by {piece_chars}");
            }
        }
        assert_eq!(Positions::new(std::iter::once(0..0)).span(&(0..0)), crate::Offsets::new("").span(0..0));
    }
}
