//! The inner loop of attention: some query rows against one tile of 32 keys.

use super::KEYS;
use crate::cpu::per_body;
use crate::math::exp;

/// Query rows of one head, and what their softmax has summed up so far.
#[derive(Debug, Default)]
pub(super) struct Rows {
    dim: usize,
    /// `[R, D]`, scaled by `1 / √D`.
    q: Vec<f32>,
    /// `[R]`: keys that each row may see, counted from the start of the sequence.
    visible: Vec<usize>,
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

    /// Adds a query that sees the first `visible` keys.
    pub fn push(&mut self, q: &[f32], visible: usize) {
        let scale = 1.0 / (self.dim as f32).sqrt();
        self.q.extend(q.iter().map(|x| x * scale));
        self.visible.push(visible);
        self.max.push(f32::NEG_INFINITY);
        self.sum.push(0.0);
        self.out.resize(self.out.len() + self.dim, 0.0);
    }

    pub fn most_visible(&self) -> usize {
        self.visible.iter().copied().max().unwrap_or(0)
    }

    /// Writes the attention of row `row`.
    pub fn finish(&self, row: usize, out: &mut [f32]) {
        let sums = &self.out[row * self.dim..][..self.dim];
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum / self.sum[row]);
    }
}

per_body! {
    /// Lets every row attend to the keys of one tile, of which the first is key `first_key` of the sequence.
    pub(super) fn attend(body, rows: &mut Rows, tile: &Tile, first_key: usize) = attend_rows;
}

#[inline(always)]
fn attend_rows(rows: &mut Rows, tile: &Tile, first_key: usize) {
    let Rows { dim, q, visible, max, sum, out } = rows;
    match *dim {
        64 => attend_fixed::<64>(q, visible, max, sum, out, tile, first_key),
        128 => attend_fixed::<128>(q, visible, max, sum, out, tile, first_key),
        _ => {
            let rows = q.chunks_exact(*dim).zip(out.chunks_exact_mut(*dim)).zip(visible).zip(max.iter_mut().zip(sum));
            for (((q, out), visible), (max, sum)) in rows {
                attend_row(q, out, visible.saturating_sub(first_key).min(KEYS), max, sum, tile);
            }
        }
    }
}

/// The same with the head dim known, so that the sums stay in registers.
#[inline(always)]
fn attend_fixed<const D: usize>(
    q: &[f32],
    visible: &[usize],
    max: &mut [f32],
    sum: &mut [f32],
    out: &mut [f32],
    tile: &Tile,
    first_key: usize,
) {
    let (q, out) = (q.as_chunks::<D>().0, out.as_chunks_mut::<D>().0);
    for row in 0..q.len() {
        let keys = visible[row].saturating_sub(first_key).min(KEYS);
        attend_row(&q[row], &mut out[row], keys, &mut max[row], &mut sum[row], tile);
    }
}

#[inline(always)]
fn attend_row(q: &[f32], out: &mut [f32], keys: usize, max: &mut f32, sum: &mut f32, tile: &Tile) {
    if keys == 0 {
        return;
    }
    let (key_rows, _) = tile.keys.as_chunks::<KEYS>();
    let mut scores = [0f32; KEYS];
    for (q, keys) in q.iter().zip(key_rows) {
        for (score, key) in scores.iter_mut().zip(keys) {
            *score = q.mul_add(*key, *score);
        }
    }
    for (j, score) in scores.iter_mut().enumerate() {
        *score = if j < keys { *score } else { f32::NEG_INFINITY };
    }
    let largest = largest_of(&scores).max(*max);
    let mut weights = [0f32; KEYS];
    for (weight, score) in weights.iter_mut().zip(&scores) {
        *weight = exp(score - largest);
    }
    let shrink = exp(*max - largest);
    *sum = sum.mul_add(shrink, sum_of(&weights));
    *max = largest;
    add_values(out, shrink, &weights[..keys], &tile.values);
}

#[inline(always)]
fn add_values(out: &mut [f32], shrink: f32, weights: &[f32], values: &[f32]) {
    let dim = out.len();
    const LANES: usize = 64;
    let (blocks, rest) = out.as_chunks_mut::<LANES>();
    let whole = blocks.len() * LANES;
    for (block, out) in blocks.iter_mut().enumerate() {
        let mut sums: [f32; LANES] = std::array::from_fn(|i| out[i] * shrink);
        for (weight, value) in weights.iter().zip(values.chunks_exact(dim)) {
            let value: &[f32; LANES] = value[block * LANES..][..LANES].try_into().expect("a whole block");
            for (sum, value) in sums.iter_mut().zip(value) {
                *sum = weight.mul_add(*value, *sum);
            }
        }
        *out = sums;
    }
    for (i, out) in rest.iter_mut().enumerate() {
        let terms = weights.iter().zip(values.chunks_exact(dim));
        *out = terms.fold(*out * shrink, |sum, (weight, value)| weight.mul_add(value[whole + i], sum));
    }
}

#[inline(always)]
fn largest_of(x: &[f32; KEYS]) -> f32 {
    let mut lanes: [f32; 16] = std::array::from_fn(|i| x[i].max(x[i + 16]));
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] = lanes[i].max(lanes[i + width]);
        }
    }
    lanes[0]
}

#[inline(always)]
fn sum_of(x: &[f32; KEYS]) -> f32 {
    let mut lanes: [f32; 16] = std::array::from_fn(|i| x[i] + x[i + 16]);
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    lanes[0]
}
