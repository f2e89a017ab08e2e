//! The online softmax: query rows against one tile of 32 keys.

use std::ops::Range;

use super::KEYS;
use super::pairs;
use super::product::{Kept, Queries, Tile};
use crate::cpu::Isa;
use crate::per_isa::per_isa;
use crate::simd::{SimdF32x16, exp};

/// Query rows of one head and the running state of their softmax.
#[derive(Debug, Default)]
pub(super) struct Rows {
    dim: usize,
    /// `[R, D]`, scaled by `1 / √D`.
    q: Vec<f32>,
    /// `[R, D/2]`: `q` in bf16, if [`Rows::round`] was called.
    pairs: Vec<u32>,
    /// `[R]`: the keys that each row may see, counted from the start of the sequence.
    visible: Vec<Range<usize>>,
    /// `[R]`: the largest score so far.
    max: Vec<f32>,
    /// `[R]`: the sum of `e^(score - max)` so far.
    sum: Vec<f32>,
    /// `[R, D]`: the sum of `e^(score - max) v` so far.
    out: Vec<f32>,
}

impl Rows {
    /// Removes all rows.
    pub fn clear(&mut self, dim: usize) {
        self.dim = dim;
        for list in [&mut self.q, &mut self.max, &mut self.sum, &mut self.out] {
            list.clear();
        }
        self.pairs.clear();
        self.visible.clear();
    }

    /// Adds a query that attends to these keys.
    pub fn push(&mut self, q: &[f32], visible: Range<usize>) {
        let scale = 1.0 / (self.dim as f32).sqrt();
        self.q.extend(q.iter().map(|x| x * scale));
        self.visible.push(visible);
        self.max.push(f32::NEG_INFINITY);
        self.sum.push(0.0);
        self.out.resize(self.out.len() + self.dim, 0.0);
    }

    /// Rounds all queries to bf16.
    pub fn round(&mut self, isa: Isa) {
        self.pairs.resize(self.q.len() / 2, 0);
        pairs::pack(isa, &self.q, &mut self.pairs);
    }

    /// True if rows are so few that a tile is best converted to `f32` in registers.
    pub fn are_few(&self) -> bool {
        self.visible.len() <= MAX_TOGETHER
    }

    /// The union of all rows' visible keys.
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

/// Rows that are processed together per tile; at most the SIMD width.
pub(super) const MAX_TOGETHER: usize = 8;

/// Lets every row attend to one tile, whose first key is key `first_key` of the sequence. Rows with the same visible keys
/// are processed together.
pub(super) fn attend<T: Kept>(isa: Isa, rows: &mut Rows, tile: Tile<'_, T>, next: Tile<'_, T>, first_key: usize) {
    let count = rows.visible.len();
    let mut row = 0;
    while row < count {
        let within = |key: usize| key.saturating_sub(first_key).min(KEYS);
        let sees = |row: usize| within(rows.visible[row].start)..within(rows.visible[row].end);
        let (keys, most) = (sees(row), count.min(row + MAX_TOGETHER));
        let together = (row + 1..most).take_while(|row| sees(*row) == keys).count() + 1;
        if !keys.is_empty() {
            attend_together(isa, rows, row..row + together, keys, tile, next);
        }
        row += together;
    }
}

fn attend_together<T: Kept>(
    isa: Isa,
    rows: &mut Rows,
    together: Range<usize>,
    keys: Range<usize>,
    tile: Tile<'_, T>,
    next: Tile<'_, T>,
) {
    let mut weights = [[0f32; KEYS]; MAX_TOGETHER];
    let mut shrink = [0f32; LANES];
    let weights = &mut weights[..together.len()];
    let values = together.start * rows.dim..together.end * rows.dim;
    let pairs = rows.pairs.get(values.start / 2..values.end / 2).unwrap_or_default();
    T::score(isa, Queries { floats: &rows.q[values.clone()], pairs }, tile, next, weights);
    let (max, sum) = (&mut rows.max[together.clone()], &mut rows.sum[together]);
    weigh(isa, keys.clone(), weights, max, sum, &mut shrink);
    T::add(isa, tile, keys.end, &shrink[..weights.len()], weights, &mut rows.out[values]);
}

/// SIMD width.
const LANES: usize = 16;

per_isa! {
    /// Turns scores into softmax weights, 0 for keys that are not visible. `shrink` receives the factor by which earlier partial
    /// sums are rescaled.
    fn weigh(
        isa, keys: Range<usize>, scores: &mut [[f32; KEYS]], max: &mut [f32], sum: &mut [f32], shrink: &mut [f32; LANES],
    ) = weigh_rows::<L>;
}

#[inline(always)]
fn weigh_rows<L: SimdF32x16>(
    keys: Range<usize>,
    scores: &mut [[f32; KEYS]],
    max: &mut [f32],
    sum: &mut [f32],
    shrink: &mut [f32; LANES],
) {
    for (row, scores) in scores.iter_mut().enumerate() {
        scores[..keys.start].fill(f32::NEG_INFINITY);
        scores[keys.end..].fill(f32::NEG_INFINITY);
        let (halves, _) = scores.as_chunks_mut::<LANES>();
        let (low, high) = (L::load(&halves[0]), L::load(&halves[1]));
        let largest = low.max(high).largest().max(max[row]);
        let (low, high) = (exp(low.sub(L::splat(largest))), exp(high.sub(L::splat(largest))));
        low.store(&mut halves[0]);
        high.store(&mut halves[1]);
        shrink[row] = max[row] - largest;
        max[row] = largest;
    }
    exp(L::load(shrink)).store(shrink);
    for (row, scores) in scores.iter().enumerate() {
        let (halves, _) = scores.as_chunks::<LANES>();
        let added = L::load(&halves[0]).add(L::load(&halves[1])).sum();
        sum[row] = sum[row].mul_add(shrink[row], added);
    }
}
