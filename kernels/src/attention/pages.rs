//! The paged KV cache (32 tokens per page) and causal attention over it.

use std::cell::RefCell;
use std::ops::Range;

use half::{bf16, f16};

use super::heads::{Heads, KEYS, PageShape};
use super::in_tiles::{self, Source, TiledRows};
use super::product::Tile;
use super::tile::{Rows, attend};
use super::{pairs, quantised};
use crate::cpu::{Isa, active_isa};
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};
use crate::simd::{SimdF32x16, prefetch};

/// The pages of one layer in their storage precision.
#[derive(Debug, Clone, Copy)]
pub enum Pages<'a> {
    F16(&'a [f16]),
    F32(&'a [f32]),
    /// Two neighbours of a sum beside each other, multiplied in bf16.
    Bf16(&'a [bf16]),
    /// In 8 bits: the numbers of a tile, then their scales.
    Q8(&'a [u8]),
}

/// Mutable pages of one layer.
#[derive(Debug)]
pub enum PagesMut<'a> {
    F16(&'a mut [f16]),
    F32(&'a mut [f32]),
    Bf16(&'a mut [bf16]),
    Q8(&'a mut [u8]),
}

/// The keys and values of `head` in page `page`.
fn tile<T>(pages: &[T], shape: PageShape, page: usize, head: usize) -> Tile<'_, T> {
    let part = |start: usize| &pages[start..][..shape.tile_len()];
    Tile { keys: part(shape.keys(page, head)), values: part(shape.values(page, head)) }
}

per_isa! {
    fn widen(isa, halves: &[f16], out: &mut [f32]) = widen_halves::<L>;
}

#[inline(always)]
fn widen_halves<L: SimdF32x16>(halves: &[f16], out: &mut [f32]) {
    // A tile is a multiple of 32 values.
    for (halves, out) in halves.as_chunks::<16>().0.iter().zip(out.as_chunks_mut::<16>().0) {
        L::load_halves(halves).store(out);
    }
}

per_isa! {
    /// Rounds to f16, halves to even.
    fn narrow(isa, floats: &[f32], out: &mut [f16]) = narrow_floats::<L>;
}

#[inline(always)]
fn narrow_floats<L: SimdF32x16>(floats: &[f32], out: &mut [f16]) {
    let ((floats, rest), (out, last)) = (floats.as_chunks::<16>(), out.as_chunks_mut::<16>());
    floats.iter().zip(out).for_each(|(floats, out)| L::load(floats).store_halves(out));
    rest.iter().zip(last).for_each(|(x, out)| *out = f16::from_f32(*x));
}

/// Brings a tile into the cache while another is computed with.
fn fetch_ahead(halves: &[f16]) {
    halves.chunks(64 / size_of::<f16>()).for_each(|line| prefetch(line.as_ptr()));
}

impl PagesMut<'_> {
    /// Writes the key of `head` of the token at `offset` in page `page`.
    pub(crate) fn write_key(&mut self, shape: PageShape, (page, offset): (usize, usize), head: usize, key: &[f32]) {
        match self {
            PagesMut::Q8(pages) => {
                quantised::write_key(active_isa(), &mut pages[shape.quantised_keys(page, head)], offset, key);
            }
            PagesMut::Bf16(pages) => {
                pairs::write_key(&mut pages[shape.keys(page, head)..][..shape.tile_len()], offset, key);
            }
            _ => self.write(shape.keys(page, head) + offset, KEYS, key),
        }
    }

    /// Writes the value of `head` of the token at `offset` in page `page`.
    pub(crate) fn write_value(&mut self, shape: PageShape, (page, offset): (usize, usize), head: usize, value: &[f32]) {
        match self {
            PagesMut::Q8(pages) => {
                quantised::write_value(active_isa(), &mut pages[shape.quantised_values(page, head)], offset, value);
            }
            PagesMut::Bf16(pages) => {
                pairs::write_value(&mut pages[shape.values(page, head)..][..shape.tile_len()], offset, value);
            }
            _ => self.write(shape.values(page, head) + offset * shape.dim, 1, value),
        }
    }

    /// Writes values `stride` apart, where they are not in blocks.
    fn write(&mut self, start: usize, stride: usize, values: &[f32]) {
        match self {
            PagesMut::Bf16(_) | PagesMut::Q8(_) => unreachable!("written by heads"),
            PagesMut::F16(pages) if stride == 1 => narrow(active_isa(), values, &mut pages[start..][..values.len()]),
            PagesMut::F16(pages) => {
                let mut halves = [f16::ZERO; 64];
                for (values, start) in values.chunks(halves.len()).zip((start..).step_by(stride * halves.len())) {
                    narrow(active_isa(), values, &mut halves[..values.len()]);
                    let slots = pages[start..].iter_mut().step_by(stride);
                    slots.zip(&halves[..values.len()]).for_each(|(slot, x)| *slot = *x);
                }
            }
            PagesMut::F32(pages) => {
                let slots = pages[start..].iter_mut().step_by(stride);
                slots.zip(values).for_each(|(slot, x)| *slot = *x);
            }
        }
    }
}

/// One sequence of a ragged batch.
#[derive(Debug, Clone)]
pub struct PagedSequence<'a> {
    /// Its rows in the batch.
    pub rows: Range<usize>,
    /// Tokens before the first of these rows.
    pub past: usize,
    /// The pages that hold its tokens, in order.
    pub pages: &'a [u32],
}

impl PagedSequence<'_> {
    /// The keys that a row sees: its own and those before it, the latest `window` if there is a window.
    fn visible(&self, window: Option<usize>, row: usize) -> Range<usize> {
        let end = self.past + row - self.rows.start + 1;
        window.map_or(0, |window| end.saturating_sub(window))..end
    }
}

/// Query tokens of one sequence that a task takes together.
const TOKENS_PER_TASK: usize = 16;

/// Causal attention of `q: [N, A, D]` over pages that already hold the keys and values of every row; fills `out: [N, A, D]`.
/// With a sliding window, a row attends to its last `window` keys, its own included.
///
/// # Panics
/// If a slice has the wrong size or a sequence has too few pages.
pub fn paged(
    isa: Isa,
    heads: Heads,
    window: Option<usize>,
    q: &[f32],
    pages: Pages<'_>,
    sequences: &[PagedSequence<'_>],
    out: &mut [f32],
) {
    assert_eq!(q.len(), out.len());
    let out = Disjoint::new(out);
    let in_tiles = matches!(pages, Pages::Bf16(_)) && in_tiles::applies(isa, heads.dim);
    let tokens = if in_tiles { in_tiles::ROWS_PER_TASK.div_ceil(heads.group()) } else { TOKENS_PER_TASK };
    let mut tasks = Vec::new();
    for sequence in sequences {
        assert!(sequence.pages.len() * KEYS >= sequence.past + sequence.rows.len(), "too few pages");
        for start in sequence.rows.clone().step_by(tokens) {
            let rows = start..sequence.rows.end.min(start + tokens);
            tasks.extend((0..heads.keys).map(|head| (sequence, rows.clone(), head)));
        }
    }
    parallel_for(tasks.len(), &|task| {
        // The last tokens attend to most keys: start with them, so that threads finish together.
        let (sequence, rows, head) = &tasks[tasks.len() - 1 - task];
        match pages {
            Pages::Bf16(pages) if in_tiles => {
                let source = Source { pages, shape: heads.page(), list: sequence.pages, head: *head };
                attend_in_tiles(isa, heads, window, q, source, sequence, rows.clone(), &out);
            }
            _ => attend_task(isa, heads, window, q, pages, sequence, rows.clone(), *head, &out),
        }
    });
}

#[allow(clippy::too_many_arguments)]
fn attend_task(
    isa: Isa,
    heads: Heads,
    window: Option<usize>,
    q: &[f32],
    pages: Pages<'_>,
    sequence: &PagedSequence<'_>,
    tokens: Range<usize>,
    head: usize,
    out: &Disjoint<'_, f32>,
) {
    thread_local!(static SCRATCH: RefCell<(Rows, [Vec<f32>; 2])> = RefCell::default());
    let (group, dim) = (heads.group(), heads.dim);
    let shape = heads.page();
    SCRATCH.with_borrow_mut(|(rows, [keys, values])| {
        rows.clear(dim);
        [&mut *keys, values].into_iter().for_each(|wide| wide.resize(shape.tile_len(), 0.0));
        for token in tokens.clone() {
            let visible = sequence.visible(window, token);
            for query_head in head * group..(head + 1) * group {
                rows.push(&q[token * heads.query_width() + query_head * dim..][..dim], visible.clone());
            }
        }
        if matches!(pages, Pages::Bf16(_)) {
            rows.round(isa);
        }
        let seen = rows.seen();
        let last = seen.end.div_ceil(KEYS) - 1;
        for page in seen.start / KEYS..=last {
            let [index, next] = [page, last.min(page + 1)].map(|page| sequence.pages[page] as usize);
            match pages {
                Pages::F32(pages) => {
                    let [tile, next] = [index, next].map(|page| tile(pages, shape, page, head));
                    attend(isa, rows, tile, next, page * KEYS);
                }
                Pages::Bf16(pages) => {
                    let [tile, next] = [index, next].map(|page| tile(pages, shape, page, head));
                    attend(isa, rows, tile, next, page * KEYS);
                }
                Pages::F16(pages) if rows.are_few() => {
                    let [tile, next] = [index, next].map(|page| tile(pages, shape, page, head));
                    attend(isa, rows, tile, next, page * KEYS);
                }
                Pages::Q8(pages) => {
                    quantised::widen_keys(isa, &pages[shape.quantised_keys(index, head)], keys);
                    quantised::widen_values(isa, &pages[shape.quantised_values(index, head)], values);
                    let tile = Tile { keys, values };
                    attend(isa, rows, tile, tile, page * KEYS);
                }
                Pages::F16(pages) => {
                    let [halves, next] = [index, next].map(|page| tile(pages, shape, page, head));
                    widen(isa, halves.keys, keys);
                    widen(isa, halves.values, values);
                    [next.keys, next.values].into_iter().for_each(fetch_ahead);
                    let tile = Tile { keys, values };
                    attend(isa, rows, tile, tile, page * KEYS);
                }
            }
        }
        for (i, token) in tokens.enumerate() {
            for j in 0..group {
                let start = token * heads.query_width() + (head * group + j) * dim;
                // SAFETY: a (token, head) pair belongs to one task.
                rows.finish(i * group + j, unsafe { out.part(start, dim) });
            }
        }
    });
}

#[allow(clippy::too_many_arguments)]
fn attend_in_tiles(
    isa: Isa,
    heads: Heads,
    window: Option<usize>,
    q: &[f32],
    source: Source<'_>,
    sequence: &PagedSequence<'_>,
    tokens: Range<usize>,
    out: &Disjoint<'_, f32>,
) {
    thread_local!(static ROWS: RefCell<TiledRows> = RefCell::default());
    let (group, dim) = (heads.group(), heads.dim);
    let starts = |token: usize| (0..group).map(move |j| token * heads.query_width() + (source.head * group + j) * dim);
    ROWS.with_borrow_mut(|rows| {
        rows.begin(dim, tokens.len() * group);
        for token in tokens.clone() {
            let visible = sequence.visible(window, token);
            starts(token).for_each(|start| rows.push(isa, &q[start..][..dim], visible.clone()));
        }
        in_tiles::attend(isa, rows, source);
        for (row, start) in tokens.flat_map(starts).enumerate() {
            // SAFETY: a (token, head) pair belongs to one task.
            unsafe { out.part(start, dim) }.copy_from_slice(rows.result(row));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_rounds_to_f16_as_the_reference_does() {
        // All exponents and signs, with fractions around the borders of rounding.
        let floats: Vec<f32> =
            (0..1 << 20).map(|i: u32| f32::from_bits(i << 12 | [0, 0x800, 0xFFF, 1][i as usize % 4])).collect();
        let want: Vec<f16> = floats.iter().map(|x| f16::from_f32(*x)).collect();
        for isa in Isa::available() {
            let mut got = vec![f16::ZERO; floats.len()];
            narrow(isa, &floats[..floats.len() - 5], &mut got[..floats.len() - 5]);
            for ((x, got), want) in floats.iter().zip(&got).zip(&want).take(floats.len() - 5) {
                assert!(
                    got.to_bits() == want.to_bits() || (x.is_nan() && got.is_nan()),
                    "{isa:?}: {x} gives {got}, not {want}"
                );
            }
        }
    }
}
