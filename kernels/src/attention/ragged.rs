//! Bidirectional attention of an encoder over a ragged batch: sequences are contiguous, without padding.

use std::cell::RefCell;
use std::ops::Range;

use half::bf16;

use super::heads::PageShape;
use super::in_tiles::{self, Source, TiledRows};
use super::product::Tile;
use super::tile::{Rows, attend};
use super::{Heads, KEYS, in_bf16};
use crate::cpu::Isa;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};
use crate::simd::{prefetch, prefetch_to_write};

/// Query tokens of one sequence per task; every task gathers the keys and values once, or reads them from pages.
const TOKENS_PER_TASK: usize = 128;

/// Tokens whose queries are requested ahead: those of a head are far apart.
const AHEAD: usize = 8;

/// In which numbers an encoder multiplies queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// In `f32`.
    Float,
    /// As the model's weights, which are bf16: in bf16 on AMX if a head's dimensions are a multiple of 32, else in `f32`.
    Bf16Weights,
}

/// Attention within each of `sequences`, ranges of rows of `qkv: [N, 3, A, D]`; fills `out: [N, A, D]`.
///
/// # Panics
/// If a slice has the wrong size.
pub fn ragged(isa: Isa, heads: Heads, precision: Precision, qkv: &[f32], sequences: &[Range<usize>], out: &mut [f32]) {
    assert_eq!(qkv.len(), 3 * out.len());
    let out = Disjoint::new(out);
    let mut tasks = Vec::new();
    for (at, sequence) in sequences.iter().enumerate() {
        for start in sequence.clone().step_by(TOKENS_PER_TASK) {
            let rows = start..sequence.end.min(start + TOKENS_PER_TASK);
            tasks.extend((0..heads.queries).map(|head| (at, rows.clone(), head)));
        }
    }
    if precision == Precision::Bf16Weights && in_tiles::applies(isa, heads.dim) {
        let (pages, lists) = in_pages(isa, heads, qkv, sequences);
        return parallel_for(tasks.len(), &|task| {
            let (at, rows, head) = tasks[task].clone();
            let source = Source { pages: &pages, shape: shape(heads), list: &lists[at], head };
            attend_in_tiles(isa, heads, qkv, source, sequences[at].len(), rows, &out);
        });
    }
    parallel_for(tasks.len(), &|task| {
        let (at, rows, head) = tasks[task].clone();
        attend_task(isa, heads, qkv, sequences[at].clone(), rows, head, &out);
    });
}

fn attend_task(
    isa: Isa,
    heads: Heads,
    qkv: &[f32],
    sequence: Range<usize>,
    tokens: Range<usize>,
    head: usize,
    out: &Disjoint<'_, f32>,
) {
    thread_local!(static SCRATCH: RefCell<(Rows, [Vec<f32>; 2])> = RefCell::default());
    let (dim, width) = (heads.dim, heads.query_width());
    let part = |token: usize, which: usize| &qkv[token * 3 * width + which * width + head * dim..][..dim];
    SCRATCH.with_borrow_mut(|(rows, [keys, values])| {
        rows.clear(dim);
        [&mut *keys, values].into_iter().for_each(|tile| tile.resize(dim * KEYS, 0.0));
        tokens.clone().for_each(|token| rows.push(part(token, 0), 0..sequence.len()));
        for first_key in (0..sequence.len()).step_by(KEYS) {
            for j in 0..KEYS.min(sequence.len() - first_key) {
                let token = sequence.start + first_key + j;
                part(token, 1).iter().enumerate().for_each(|(d, key)| keys[d * KEYS + j] = *key);
                values[j * dim..][..dim].copy_from_slice(part(token, 2));
            }
            let tile = Tile { keys, values };
            attend(isa, rows, tile, tile, first_key);
        }
        for (row, token) in tokens.enumerate() {
            // SAFETY: a (token, head) pair belongs to one task.
            rows.finish(row, unsafe { out.part(token * width + head * dim, dim) });
        }
    });
}

fn attend_in_tiles(
    isa: Isa,
    heads: Heads,
    qkv: &[f32],
    source: Source<'_>,
    keys: usize,
    tokens: Range<usize>,
    out: &Disjoint<'_, f32>,
) {
    thread_local!(static ROWS: RefCell<TiledRows> = RefCell::default());
    let (dim, width) = (heads.dim, heads.query_width());
    let query = |token: usize| &qkv[token * 3 * width + source.head * dim..][..dim];
    // SAFETY: a (token, head) pair belongs to one task, which writes one token after the other.
    let out = |token: usize| unsafe { out.part(token * width + source.head * dim, dim) };
    ROWS.with_borrow_mut(|rows| {
        rows.begin(dim, tokens.len());
        for token in tokens.clone() {
            if token + AHEAD < tokens.end {
                query(token + AHEAD).chunks(LINE).for_each(|line| prefetch(line.as_ptr()));
            }
            out(token).chunks(LINE).for_each(|line| prefetch_to_write(line.as_ptr()));
            rows.push(isa, query(token), 0..keys);
        }
        in_tiles::attend(isa, rows, source);
        for (row, token) in tokens.enumerate() {
            out(token).copy_from_slice(rows.result(row));
        }
    });
}

/// Every head has keys and values of its own.
fn shape(heads: Heads) -> PageShape {
    PageShape { heads: heads.queries, dim: heads.dim }
}

/// The keys and values of a batch in pages of bf16, and the pages of each sequence.
fn in_pages(isa: Isa, heads: Heads, qkv: &[f32], sequences: &[Range<usize>]) -> (Vec<bf16>, Vec<Vec<u32>>) {
    let (shape, width) = (shape(heads), heads.query_width());
    let (mut parts, mut lists) = (Vec::new(), Vec::new());
    for sequence in sequences {
        let first = parts.len() as u32;
        parts.extend(sequence.clone().step_by(KEYS).map(|start| start..sequence.end.min(start + KEYS)));
        lists.push((first..parts.len() as u32).collect());
    }
    let mut pages = vec![bf16::ZERO; parts.len() * shape.len()];
    let disjoint = Disjoint::new(&mut pages);
    parallel_for(parts.len(), &|page| {
        let rows = parts[page].clone();
        for head in 0..shape.heads {
            let start = (3 * rows.start + 1) * width + head * shape.dim;
            // SAFETY: every task owns one page, in which the keys and values of heads do not overlap.
            let [keys, values] = [shape.keys(page, head), shape.values(page, head)]
                .map(|start| unsafe { disjoint.part(start, shape.tile_len()) });
            write_keys(isa, &qkv[start..], 3 * width, rows.len(), keys);
            write_values(isa, &qkv[start + width..], 3 * width, rows.len(), values);
        }
    });
    (pages, lists)
}

/// Numbers in a cache line.
const LINE: usize = 16;

/// Dimensions that are rounded together.
const BLOCK: usize = 32;

per_isa! {
    /// Writes the keys of up to 32 tokens, `stride` apart, into a head's keys of a page.
    fn write_keys(isa, floats: &[f32], stride: usize, count: usize, keys: &mut [bf16]) = write_key_pairs;
}

#[inline(always)]
fn write_key_pairs(floats: &[f32], stride: usize, count: usize, keys: &mut [bf16]) {
    let dim = keys.len() / KEYS;
    let (keys, _) = keys.as_chunks_mut::<2>();
    for token in 0..count {
        let blocks = floats[token * stride..][..dim].as_chunks::<BLOCK>().0;
        for (key, rows) in blocks.iter().zip(keys.chunks_exact_mut(BLOCK / 2 * KEYS)) {
            let mut rounded = [bf16::ZERO; BLOCK];
            rounded.iter_mut().zip(key).for_each(|(rounded, x)| *rounded = in_bf16(*x));
            for (pair, row) in rounded.as_chunks::<2>().0.iter().zip(rows.chunks_exact_mut(KEYS)) {
                row[token] = *pair;
            }
        }
    }
}

per_isa! {
    /// Writes the values of up to 32 tokens, `stride` apart, into a head's values of a page.
    fn write_values(isa, floats: &[f32], stride: usize, count: usize, values: &mut [bf16]) = write_value_pairs;
}

#[inline(always)]
fn write_value_pairs(floats: &[f32], stride: usize, count: usize, values: &mut [bf16]) {
    let dim = values.len() / KEYS;
    let value = |token: usize| floats[token * stride..][..dim].as_chunks::<BLOCK>().0;
    for (at, row) in values.chunks_exact_mut(2 * dim).enumerate().take(count.div_ceil(2)) {
        // The last one of an odd number is not seen, so it may be anything.
        let (first, second) = (value(2 * at), value((2 * at + 1).min(count - 1)));
        for ((first, second), row) in first.iter().zip(second).zip(row.as_chunks_mut::<{ 2 * BLOCK }>().0) {
            for (d, pair) in row.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                *pair = [in_bf16(first[d]), in_bf16(second[d])];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs;
    use super::*;

    #[test]
    fn pages_of_a_batch_hold_what_pages_of_a_cache_would() {
        const STRIDE: usize = 200;
        let floats: Vec<f32> = (0..KEYS * STRIDE).map(|i| ((i * 7919) % 10_007) as f32 / 1000.0 - 5.0).collect();
        for (isa, dim, count) in Isa::available().flat_map(|isa| [(isa, 64, 32), (isa, 32, 7), (isa, 96, 1)]) {
            let (mut keys, mut values) = (vec![bf16::ZERO; dim * KEYS], vec![bf16::ZERO; dim * KEYS]);
            write_keys(isa, &floats, STRIDE, count, &mut keys);
            write_values(isa, &floats, STRIDE, count, &mut values);
            let (mut want_keys, mut want_values) = (keys.clone(), values.clone());
            for token in 0..count {
                pairs::write_key(&mut want_keys, token, &floats[token * STRIDE..][..dim]);
                pairs::write_value(&mut want_values, token, &floats[token * STRIDE..][..dim]);
            }
            assert!(keys == want_keys && values == want_values, "{isa}, {count} tokens of {dim} dimensions");
        }
    }
}
