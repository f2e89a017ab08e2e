//! The paged KV cache (32 tokens per page) and causal attention over it.

use std::cell::RefCell;
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::heads::{Heads, KEYS, PageShape};
use super::product::Tile;
use super::quantised;
use super::tile::{Rows, attend};
use crate::cpu::{Isa, active_isa};
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};
use crate::simd::SimdF32x16;

/// The pages of one layer in their storage precision.
#[derive(Debug, Clone, Copy)]
pub enum Pages<'a> {
    F16(&'a [f16]),
    F32(&'a [f32]),
    /// In 8 bits: the numbers of a tile, then their scales.
    Q8(&'a [u8]),
}

/// Mutable pages of one layer.
#[derive(Debug)]
pub enum PagesMut<'a> {
    F16(&'a mut [f16]),
    F32(&'a mut [f32]),
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

impl PagesMut<'_> {
    /// Writes the key of `head` of the token at `offset` in page `page`.
    pub(crate) fn write_key(&mut self, shape: PageShape, (page, offset): (usize, usize), head: usize, key: &[f32]) {
        match self {
            PagesMut::Q8(pages) => {
                quantised::write_key(active_isa(), &mut pages[shape.quantised_keys(page, head)], offset, key);
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
            _ => self.write(shape.values(page, head) + offset * shape.dim, 1, value),
        }
    }

    /// Writes values `stride` apart, where they are not in blocks.
    fn write(&mut self, start: usize, stride: usize, values: &[f32]) {
        match self {
            PagesMut::Q8(_) => unreachable!("values in blocks are written by heads"),
            PagesMut::F16(pages) if stride == 1 => pages[start..][..values.len()].convert_from_f32_slice(values),
            PagesMut::F16(pages) => {
                let mut halves = [f16::ZERO; 64];
                for (values, start) in values.chunks(halves.len()).zip((start..).step_by(stride * halves.len())) {
                    halves[..values.len()].convert_from_f32_slice(values);
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
    let mut tasks = Vec::new();
    for sequence in sequences {
        assert!(sequence.pages.len() * KEYS >= sequence.past + sequence.rows.len(), "too few pages");
        for start in sequence.rows.clone().step_by(TOKENS_PER_TASK) {
            let rows = start..sequence.rows.end.min(start + TOKENS_PER_TASK);
            tasks.extend((0..heads.keys).map(|head| (sequence, rows.clone(), head)));
        }
    }
    parallel_for(tasks.len(), &|task| {
        // The last tokens attend to most keys: start with them, so that threads finish together.
        let (sequence, rows, head) = &tasks[tasks.len() - 1 - task];
        attend_task(isa, heads, window, q, pages, sequence, rows.clone(), *head, &out);
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
            let end = sequence.past + token - sequence.rows.start + 1;
            let visible = window.map_or(0, |window| end.saturating_sub(window))..end;
            for query_head in head * group..(head + 1) * group {
                rows.push(&q[token * heads.query_width() + query_head * dim..][..dim], visible.clone());
            }
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
                    let halves = tile(pages, shape, index, head);
                    widen(isa, halves.keys, keys);
                    widen(isa, halves.values, values);
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
