//! Heads, and the pages that hold their keys and values.

use std::ops::Range;

use super::quantised::{BLOCK, SCALE};

/// Keys in a tile, and tokens in a page.
pub const KEYS: usize = 32;

/// Number and width of the heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// A
    pub queries: usize,
    /// K
    pub keys: usize,
    /// D
    pub dim: usize,
}

impl Heads {
    /// Query heads that share one key/value head.
    pub fn group(self) -> usize {
        self.queries / self.keys
    }

    /// The pages that hold keys and values of these heads.
    pub fn page(self) -> PageShape {
        PageShape { heads: self.keys, dim: self.dim }
    }

    /// Width of all query heads together.
    pub fn query_width(self) -> usize {
        self.queries * self.dim
    }

    /// Width of all key heads together.
    pub fn key_width(self) -> usize {
        self.keys * self.dim
    }
}

/// The size of a page of one layer: keys `[K, D, S]`, so that one load takes the same dimension of 32 keys, then
/// values `[K, S, D]`. A layer's pages are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageShape {
    /// K
    pub heads: usize,
    /// D
    pub dim: usize,
}

impl PageShape {
    /// Values of one page.
    pub fn len(self) -> usize {
        2 * self.heads * self.tile_len()
    }

    /// Bytes of one page in 8 bits, scales included.
    ///
    /// # Panics
    /// If heads are not whole blocks of 32 dimensions.
    pub fn quantised_len(self) -> usize {
        assert!(self.dim.is_multiple_of(BLOCK), "heads of {} dimensions in blocks of {BLOCK}", self.dim);
        2 * self.heads * self.quantised_tile_len()
    }

    /// True for a page without values.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Where the keys of `head` start in page `page`.
    pub(crate) fn keys(self, page: usize, head: usize) -> usize {
        page * self.len() + head * self.tile_len()
    }

    /// Where the values of `head` start in page `page`.
    pub(crate) fn values(self, page: usize, head: usize) -> usize {
        self.keys(page, self.heads + head)
    }

    pub(super) fn tile_len(self) -> usize {
        self.dim * KEYS
    }

    /// The bytes and scales of the keys of `head` in page `page` of pages in 8 bits.
    pub(super) fn quantised_keys(self, page: usize, head: usize) -> Range<usize> {
        let start = page * self.quantised_len() + head * self.quantised_tile_len();
        start..start + self.quantised_tile_len()
    }

    /// The bytes and scales of the values of `head` in page `page` of pages in 8 bits.
    pub(super) fn quantised_values(self, page: usize, head: usize) -> Range<usize> {
        self.quantised_keys(page, self.heads + head)
    }

    fn quantised_tile_len(self) -> usize {
        self.tile_len() + self.tile_len() / BLOCK * SCALE
    }
}
