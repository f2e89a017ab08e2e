//! Texts in pieces, and the chunks in which the database has them.

use std::borrow::Cow;
use std::io;
use std::mem;
use std::ops::Range;

use rusqlite::params;

use crate::database::Database;
use crate::digest::Framed;
use crate::span::count_chars;
use crate::{Digest, DocId, Result, Span};

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
pub(crate) fn number(position: usize) -> i64 {
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
