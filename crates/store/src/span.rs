//! Spans: the position of a text in its document, in characters for people and models and in bytes for slicing.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A range of a document's text. Characters are Unicode scalar values; both ranges are half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    pub start_char: u32,
    pub end_char: u32,
    pub start_byte: u32,
    pub end_byte: u32,
}

impl Span {
    /// The bytes of the document that this span covers.
    pub fn bytes(self) -> Range<usize> {
        self.start_byte as usize..self.end_byte as usize
    }

    /// The characters of the document that this span covers.
    pub fn chars(self) -> Range<usize> {
        self.start_char as usize..self.end_char as usize
    }

    /// Whether this span contains all of `inner`.
    pub fn contains(self, inner: Self) -> bool {
        self.start_byte <= inner.start_byte
            && inner.end_byte <= self.end_byte
            && self.start_char <= inner.start_char
            && inner.end_char <= self.end_char
    }
}

/// Maps byte offsets of one text to character offsets, each in constant time.
#[derive(Debug)]
pub struct Offsets<'a> {
    text: &'a str,
    /// Number of characters that begin before each multiple of `BLOCK_BYTES`.
    chars_before: Vec<usize>,
}

const BLOCK_BYTES: usize = 256;

impl<'a> Offsets<'a> {
    /// Reads the text once.
    pub fn new(text: &'a str) -> Self {
        let mut chars = 0;
        let mut chars_before = vec![0];
        for block in text.as_bytes().chunks(BLOCK_BYTES) {
            chars += count_chars(block);
            chars_before.push(chars);
        }
        Self { text, chars_before }
    }

    /// The span of a range of bytes; none if it does not consist of whole characters of the text, or exceeds 4 GiB.
    pub fn span(&self, bytes: Range<usize>) -> Option<Span> {
        self.text.get(bytes.clone())?;
        Some(Span {
            start_char: u32::try_from(self.chars_before(bytes.start)).ok()?,
            end_char: u32::try_from(self.chars_before(bytes.end)).ok()?,
            start_byte: u32::try_from(bytes.start).ok()?,
            end_byte: u32::try_from(bytes.end).ok()?,
        })
    }

    fn chars_before(&self, byte: usize) -> usize {
        let block = byte / BLOCK_BYTES;
        self.chars_before[block] + count_chars(&self.text.as_bytes()[block * BLOCK_BYTES..byte])
    }
}

/// Counts characters: all bytes except UTF-8's continuation bytes.
pub(crate) fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}
