//! Attention over pages in bf16 on AMX.
//!
//! Query rows of a head are taken in tiles of up to 16, two tiles at once. Keys are taken in blocks of [`PAGES`] pages counted from
//! the start of the sequence, with a running maximum and sum. Scores and sums of values are products of [`crate::bf16_unit`]; a step
//! is 32 dimensions of a key or the values of one page. A block's sums of values start from zero and are added to those so far, which
//! are rescaled, with one rounding. Queries are scaled by `log2 e / √D`, so weights are powers of two. Queries and weights are rounded
//! to bf16; the sum of the weights, in 16 lanes, adds them as they were before.
//!
//! A row's bits do not depend on the other rows of its tile: a key that it does not see has weight 0, and adding zeros changes no sum.

mod block;

use std::ops::Range;

use half::bf16;
use half::slice::HalfFloatSliceExt;

use super::heads::{KEYS, PageShape};
use super::pairs::in_bf16;
use super::product::Tile;
use crate::bf16_unit::{Bf16Unit, Line, ROWS, STEP, Sums};
use crate::cpu::Isa;
use crate::per_isa::per_isa;
use crate::simd::{InBf16, prefetch};

/// Pages that a step of the softmax takes together.
const PAGES: usize = 4;

/// Keys of these pages.
pub(super) const BLOCK: usize = PAGES * KEYS;

/// Rows that a task takes, about: each reads all keys and values.
pub(super) const ROWS_PER_TASK: usize = 128;

/// SIMD width, and outputs of a product.
const LANES: usize = 16;

/// Whether pages in bf16 are multiplied by the unit.
pub(super) fn applies(isa: Isa, dim: usize) -> bool {
    isa == Isa::Amx && dim.is_multiple_of(STEP)
}

/// The keys and values of one head of a sequence.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub pages: &'a [bf16],
    pub shape: PageShape,
    /// The pages of the sequence.
    pub list: &'a [u32],
    pub head: usize,
}

impl<'a> Source<'a> {
    #[inline(always)]
    fn page(&self, page: usize) -> Tile<'a, u16> {
        let index = self.list[page] as usize;
        let part = |start: usize| self.pages[start..][..self.shape.tile_len()].reinterpret_cast();
        Tile { keys: part(self.shape.keys(index, self.head)), values: part(self.shape.values(index, self.head)) }
    }

    /// Requests the keys of a page, if the sequence has it.
    #[inline(always)]
    fn fetch_keys(&self, page: usize) {
        if page < self.list.len() {
            fetch(self.page(page).keys);
        }
    }
}

/// Requests what is used soon.
#[inline(always)]
fn fetch(numbers: &[u16]) {
    numbers.chunks(STEP).for_each(|line| prefetch(line.as_ptr()));
}

/// Query rows of one head in tiles, and the running state of their softmax.
#[derive(Default)]
pub(super) struct TiledRows {
    dim: usize,
    /// Rows of a tile.
    height: usize,
    /// `[tiles, D/32, height]`: queries in bf16.
    q: Vec<Line>,
    /// `[R]`: the keys that each row may see, counted from the start of the sequence; none for rows that only fill the last tile.
    visible: Vec<Range<usize>>,
    /// `[R]`: the largest score so far.
    max: Vec<f32>,
    /// `[R]`: the sum of `2^(score - max)` so far, in lanes.
    sum: Vec<[f32; LANES]>,
    /// `[R, D]`: the sum of `2^(score - max) v` so far.
    out: Vec<f32>,
    scratch: Scratch,
}

/// What is computed for one tile and block.
#[derive(Default)]
struct Scratch {
    /// `[PAGES, 2, 2]`: scores of a tile with 16 keys each; then products of values with the first four.
    sums: Vec<[[Sums; 2]; 2]>,
    /// `[PAGES, 2, height]`
    weights: Vec<Line>,
    /// `[PAGES, 32 D]`: values of pages of which some rows do not see all keys.
    values: Vec<u16>,
}

impl TiledRows {
    /// Prepares for `count` rows.
    pub fn begin(&mut self, dim: usize, count: usize) {
        let tiles = count.div_ceil(ROWS);
        (self.dim, self.height) = (dim, count.div_ceil(tiles));
        let padded = tiles * self.height;
        self.visible.clear();
        self.q.resize(padded * dim / STEP, Line::ZERO);
        for (list, value) in [(&mut self.max, f32::NEG_INFINITY), (&mut self.out, 0.0)] {
            list.clear();
            list.resize(padded * if value == 0.0 { dim } else { 1 }, value);
        }
        self.sum.clear();
        self.sum.resize(padded, [0.0; LANES]);
        self.scratch.sums.resize(PAGES, [[Sums::ZERO; 2]; 2]);
        self.scratch.weights.resize(PAGES * 2 * self.height, Line::ZERO);
        self.scratch.values.resize(PAGES * KEYS * dim, 0);
    }

    /// Adds a query that attends to these keys.
    pub fn push(&mut self, isa: Isa, q: &[f32], visible: Range<usize>) {
        let row = self.visible.len();
        let first = row / self.height * self.height * self.dim / STEP + row % self.height;
        round(isa, q, &mut self.q[first..], self.height);
        self.visible.push(visible);
    }

    /// The attention of row `row`.
    pub fn result(&self, row: usize) -> &[f32] {
        &self.out[row * self.dim..][..self.dim]
    }

    /// The union of the visible keys of some rows.
    fn seen(&self, rows: Range<usize>) -> Range<usize> {
        let visible = &self.visible[rows];
        let first = visible.iter().map(|visible| visible.start).min().unwrap_or(0);
        first..visible.iter().map(|visible| visible.end).max().unwrap_or(0)
    }
}

per_isa! {
    /// Writes a scaled query into every `stride`th line.
    fn round(isa, q: &[f32], lines: &mut [Line], stride: usize) = round_query;
}

#[inline(always)]
fn round_query(q: &[f32], lines: &mut [Line], stride: usize) {
    let scale = scale(q.len());
    for (line, q) in lines.iter_mut().step_by(stride).zip(q.as_chunks::<STEP>().0) {
        line.0.iter_mut().zip(q).for_each(|(line, q)| *line = in_bf16(q * scale).to_bits());
    }
}

/// What a query is multiplied by.
pub(super) fn scale(dim: usize) -> f32 {
    std::f32::consts::LOG2_E / (dim as f32).sqrt()
}

/// Lets every row attend to the keys that it sees.
pub(super) fn attend(isa: Isa, rows: &mut TiledRows, source: Source<'_>) {
    match isa {
        // SAFETY: an `Isa` is only selected after `is_available` returned true.
        #[cfg(target_arch = "x86_64")]
        Isa::Amx => unsafe { on_amx(rows, source) },
        _ => unreachable!("{isa} has no unit for bf16"),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,fma,avx2,f16c")]
fn on_amx(rows: &mut TiledRows, source: Source<'_>) {
    attend_rows::<crate::simd::Avx512, crate::bf16_unit::Amx>(rows, source);
}

#[inline(always)]
fn attend_rows<L: InBf16, U: Bf16Unit>(rows: &mut TiledRows, source: Source<'_>) {
    let mut unit = U::new(rows.height);
    let seen = rows.seen(0..rows.visible.len());
    for block in seen.start / BLOCK..seen.end.div_ceil(BLOCK) {
        for first_row in (0..rows.visible.len()).step_by(2 * rows.height) {
            block::attend::<L, U>(&mut unit, rows, first_row, block, source);
        }
    }
    for (sum, out) in rows.sum.iter().zip(rows.out.chunks_exact_mut(rows.dim)) {
        let sum = L::splat(L::load(sum).sum());
        for out in out.as_chunks_mut::<LANES>().0 {
            // A sum that vanishes could have either sign, which depends on how many zeros were added.
            L::load(out).div(sum).add(L::splat(0.0)).store(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{pairs, reference};
    use super::*;
    use crate::{bf16_unit, simd};

    const HEADS: usize = 2;
    const LIST: [u32; 7] = [5, 0, 3, 6, 2, 7, 1];

    /// `count` heads of few magnitudes, rounded already.
    fn noise(dim: usize, count: usize, seed: usize) -> Vec<Vec<f32>> {
        let x = |i: usize| ((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 0xffff) as f32 / 8192.0 - 4.0;
        (0..count).map(|at| (0..dim).map(|d| in_bf16(x(at * dim + d)).to_f32()).collect()).collect()
    }

    /// Compares rows that see `visible` of the keys and values of the second head with the reference.
    fn check<U: Bf16Unit>(dim: usize, keys: &[Vec<f32>], values: &[Vec<f32>], visible: &[Range<usize>]) {
        let shape = PageShape { heads: HEADS, dim };
        // Where no token has written there is no number.
        let mut pages = vec![bf16::NAN; 8 * shape.len()];
        for (token, (key, value)) in keys.iter().zip(values).enumerate() {
            let (page, offset) = (LIST[token / KEYS] as usize, token % KEYS);
            pairs::write_key(&mut pages[shape.keys(page, 1)..][..shape.tile_len()], offset, key);
            pairs::write_value(&mut pages[shape.values(page, 1)..][..shape.tile_len()], offset, value);
        }
        let q = noise(dim, visible.len(), 99);
        let mut rows = TiledRows::default();
        for _ in 0..2 {
            rows.begin(dim, visible.len());
            q.iter().zip(visible).for_each(|(q, visible)| rows.push(Isa::Scalar, q, visible.clone()));
            let source = Source { pages: &pages, shape, list: &LIST, head: 1 };
            attend_rows::<simd::Plain, U>(&mut rows, source);
            for (row, (q, visible)) in q.iter().zip(visible).enumerate() {
                let want = reference::attend_in_tiles(q, &keys[..visible.end], &values[..visible.end], visible.start);
                let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(rows.result(row)), bits(&want), "row {row} of {}, {visible:?}", q.len());
            }
        }
    }

    fn check_rows<U: Bf16Unit>() {
        for (dim, count, first) in [(64, 1, 0), (64, 17, 120), (32, 40, 100), (96, 35, 187), (128, 5, 130)] {
            let (keys, values) = (noise(dim, 224, 1), noise(dim, 224, 2));
            let two_rows_a_token = |row: usize| first + row / 2 + 1;
            for window in [1, 40, 1000] {
                let visible: Vec<_> =
                    (0..count).map(two_rows_a_token).map(|end: usize| end.saturating_sub(window)..end).collect();
                check::<U>(dim, &keys, &values, &visible);
            }
        }
    }

    /// The loops on every machine; compiled for AVX-512 they are compared in `tests/attention.rs` where there is the unit.
    #[test]
    fn rows_give_the_bits_of_the_reference() {
        check_rows::<bf16_unit::Plain>();
    }

    /// On AMX where the processor has it, else on its instructions emulated.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn rows_on_the_unit_give_the_bits_of_the_reference() {
        bf16_unit::emulated::emulate_where_missing();
        check_rows::<bf16_unit::Amx>();
    }

    #[test]
    fn a_row_does_not_depend_on_values_that_it_does_not_see() {
        let (dim, mut values) = (32, noise(32, 150, 2));
        values[10].fill(f32::INFINITY);
        values[140].fill(f32::NAN);
        let keys = noise(dim, 150, 1);
        let visible: Vec<_> = (0..20).map(|row| 11..130 + row / 2).collect();
        check::<bf16_unit::Plain>(dim, &keys, &values, &visible);
        check::<bf16_unit::Plain>(dim, &keys, &values, &[0..140, 11..140]);
    }
}
