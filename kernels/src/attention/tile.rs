//! The inner loop of attention: some query rows against one tile of 32 keys.

use std::ops::Range;

use super::KEYS;
use crate::cpu::per_body;
use crate::lanes::{Lanes, exp};
use crate::math;

/// Query rows of one head, and what their softmax has summed up so far.
#[derive(Debug, Default)]
pub(super) struct Rows {
    dim: usize,
    /// `[R, D]`, scaled by `1 / √D`.
    q: Vec<f32>,
    /// `[R]`: the keys that each row may see, counted from the start of the sequence.
    visible: Vec<Range<usize>>,
    /// `[R]`: the largest score so far.
    max: Vec<f32>,
    /// `[R]`: the sum of `e^(score - max)` so far.
    sum: Vec<f32>,
    /// `[R, D]`: the sum of `e^(score - max) v` so far.
    out: Vec<f32>,
}

/// One tile of keys and values in `f32`.
#[derive(Debug, Default)]
pub(super) struct Tile {
    /// `[D, 32]`
    pub keys: Vec<f32>,
    /// `[32, D]`
    pub values: Vec<f32>,
}

impl Tile {
    pub fn resize(&mut self, dim: usize) {
        self.keys.resize(dim * KEYS, 0.0);
        self.values.resize(dim * KEYS, 0.0);
    }
}

impl Rows {
    /// Forgets all rows.
    pub fn clear(&mut self, dim: usize) {
        self.dim = dim;
        for list in [&mut self.q, &mut self.max, &mut self.sum, &mut self.out] {
            list.clear();
        }
        self.visible.clear();
    }

    /// Adds a query that sees these keys.
    pub fn push(&mut self, q: &[f32], visible: Range<usize>) {
        let scale = 1.0 / (self.dim as f32).sqrt();
        self.q.extend(q.iter().map(|x| x * scale));
        self.visible.push(visible);
        self.max.push(f32::NEG_INFINITY);
        self.sum.push(0.0);
        self.out.resize(self.out.len() + self.dim, 0.0);
    }

    /// The keys that any row sees.
    pub fn seen(&self) -> Range<usize> {
        let first = self.visible.iter().map(|visible| visible.start).min().unwrap_or(0);
        first..self.visible.iter().map(|visible| visible.end).max().unwrap_or(0)
    }

    /// Writes the attention of row `row`.
    pub fn finish(&self, row: usize, out: &mut [f32]) {
        let sums = &self.out[row * self.dim..][..self.dim];
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum / self.sum[row]);
    }
}

per_body! {
    /// Lets every row attend to the keys of one tile, of which the first is key `first_key` of the sequence.
    pub(super) fn attend(body, rows: &mut Rows, tile: &Tile, first_key: usize) = attend_rows::<L>;
}

/// Rows that share one pass over a tile whose keys they all see.
const TOGETHER: usize = 4;

#[inline(always)]
fn attend_rows<L: Lanes>(rows: &mut Rows, tile: &Tile, first_key: usize) {
    let mut row = 0;
    while row < rows.visible.len() {
        let within = |key: usize| key.saturating_sub(first_key).min(KEYS);
        let sees = |row: usize| within(rows.visible[row].start)..within(rows.visible[row].end);
        let together = rows.visible.len() - row >= TOGETHER && (row..row + TOGETHER).all(|row| sees(row) == (0..KEYS));
        if together {
            attend_block::<L, TOGETHER>(rows, row, 0..KEYS, tile);
            row += TOGETHER;
        } else {
            let keys = sees(row);
            if !keys.is_empty() {
                attend_block::<L, 1>(rows, row, keys, tile);
            }
            row += 1;
        }
    }
}

/// `R` rows from `first` on against the keys `keys` of a tile.
#[inline(always)]
fn attend_block<L: Lanes, const R: usize>(rows: &mut Rows, first: usize, keys: Range<usize>, tile: &Tile) {
    let dim = rows.dim;
    let scores = scores::<L, R>(&rows.q[first * dim..][..R * dim], dim, tile);
    let mut weights = [[0f32; KEYS]; R];
    let mut shrink = [0f32; R];
    for r in 0..R {
        // Keys that are not visible weigh nothing.
        let mut masked = [f32::NEG_INFINITY; KEYS];
        let (halves, _) = masked.as_chunks_mut::<16>();
        scores[r][0].store(&mut halves[0]);
        scores[r][1].store(&mut halves[1]);
        masked[..keys.start].fill(f32::NEG_INFINITY);
        masked[keys.end..].fill(f32::NEG_INFINITY);
        let (halves, _) = masked.as_chunks::<16>();
        let (low, high) = (L::load(&halves[0]), L::load(&halves[1]));
        let (max, sum) = (&mut rows.max[first + r], &mut rows.sum[first + r]);
        let largest = low.max(high).largest().max(*max);
        let (low, high) = (exp(low.sub(L::splat(largest))), exp(high.sub(L::splat(largest))));
        shrink[r] = math::exp(*max - largest);
        *sum = sum.mul_add(shrink[r], low.add(high).sum());
        *max = largest;
        let (halves, _) = weights[r].as_chunks_mut::<16>();
        low.store(&mut halves[0]);
        high.store(&mut halves[1]);
    }
    add_values::<L, R>(&mut rows.out[first * dim..][..R * dim], dim, &shrink, &weights, keys.end, tile);
}

/// `q · k` for `R` rows and 32 keys.
#[inline(always)]
fn scores<L: Lanes, const R: usize>(q: &[f32], dim: usize, tile: &Tile) -> [[L; 2]; R] {
    let (halves, _) = tile.keys.as_chunks::<16>();
    let mut rows = [q; R];
    rows.iter_mut().enumerate().for_each(|(r, row)| *row = &q[r * dim..][..dim]);
    let mut scores = [[L::splat(0.0); 2]; R];
    for (d, keys) in halves.as_chunks::<2>().0[..dim].iter().enumerate() {
        let (low, high) = (L::load(&keys[0]), L::load(&keys[1]));
        for (score, row) in scores.iter_mut().zip(&rows) {
            let q = L::splat(row[d]);
            *score = [q.mul_add(low, score[0]), q.mul_add(high, score[1])];
        }
    }
    scores
}

/// `out · shrink + Σ_j weight_j · v_j` for `R` rows, two registers of every row at a time.
#[inline(always)]
fn add_values<L: Lanes, const R: usize>(
    out: &mut [f32],
    dim: usize,
    shrink: &[f32; R],
    weights: &[[f32; KEYS]; R],
    keys: usize,
    tile: &Tile,
) {
    let whole = dim / 32 * 32;
    for start in (0..whole).step_by(32) {
        let mut sums = [[L::splat(0.0); 2]; R];
        for (r, sum) in sums.iter_mut().enumerate() {
            let (out, _) = out[r * dim + start..][..32].as_chunks::<16>();
            *sum = [L::load(&out[0]).mul(L::splat(shrink[r])), L::load(&out[1]).mul(L::splat(shrink[r]))];
        }
        for (j, value) in tile.values.chunks_exact(dim).take(keys).enumerate() {
            let (value, _) = value[start..][..32].as_chunks::<16>();
            let (low, high) = (L::load(&value[0]), L::load(&value[1]));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                let weight = L::splat(weights[j]);
                *sum = [weight.mul_add(low, sum[0]), weight.mul_add(high, sum[1])];
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            let (out, _) = out[r * dim + start..][..32].as_chunks_mut::<16>();
            sum[0].store(&mut out[0]);
            sum[1].store(&mut out[1]);
        }
    }
    for r in 0..R {
        for i in whole..dim {
            let out = &mut out[r * dim + i];
            let terms = weights[r].iter().zip(tile.values.chunks_exact(dim)).take(keys);
            *out = terms.fold(*out * shrink[r], |sum, (weight, value)| weight.mul_add(value[i], sum));
        }
    }
}
