//! Products of query rows with a tile of keys and values, generic over [`SimdF32x16`] and the storage type of tiles.

use half::f16;

use super::KEYS;
use crate::cpu::Isa;
use crate::per_isa::per_isa;
use crate::simd::{SimdF32x16, prefetch};

/// One tile of keys and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile<'a, T> {
    /// `[D, 32]`
    pub keys: &'a [T],
    /// `[32, D]`
    pub values: &'a [T],
}

/// Query rows that are computed together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queries<'a> {
    /// `[R, D]`
    pub floats: &'a [f32],
    /// `[R, D/2]`: in bf16, for pages in bf16 only.
    pub pairs: &'a [u32],
}

/// A storage type of keys and values.
pub(super) trait Kept: Copy {
    /// `[R, 32]`: `q · k` for `q: [R, D]`; `next` is what will be read after this tile.
    fn score(isa: Isa, q: Queries<'_>, tile: Tile<'_, Self>, next: Tile<'_, Self>, scores: &mut [[f32; KEYS]]);

    /// `out: [R, D] = out · shrink + Σ_j weight_j · v_j` over the first `keys` keys.
    fn add(isa: Isa, tile: Tile<'_, Self>, keys: usize, shrink: &[f32], weights: &[[f32; KEYS]], out: &mut [f32]);
}

impl Kept for f32 {
    fn score(isa: Isa, q: Queries<'_>, tile: Tile<'_, f32>, _: Tile<'_, f32>, scores: &mut [[f32; KEYS]]) {
        score_floats(isa, q.floats, tile, scores);
    }

    fn add(isa: Isa, tile: Tile<'_, f32>, keys: usize, shrink: &[f32], weights: &[[f32; KEYS]], out: &mut [f32]) {
        add_floats(isa, tile, keys, shrink, weights, out);
    }
}

impl Kept for f16 {
    fn score(isa: Isa, q: Queries<'_>, tile: Tile<'_, f16>, next: Tile<'_, f16>, scores: &mut [[f32; KEYS]]) {
        score_halves(isa, q.floats, tile, next, scores);
    }

    fn add(isa: Isa, tile: Tile<'_, f16>, keys: usize, shrink: &[f32], weights: &[[f32; KEYS]], out: &mut [f32]) {
        add_halves(isa, tile, keys, shrink, weights, out);
    }
}

per_isa! {
    fn score_floats(isa, q: &[f32], tile: Tile<'_, f32>, scores: &mut [[f32; KEYS]]) = score_rows::<L>;
}

#[inline(always)]
fn score_rows<L: SimdF32x16>(q: &[f32], tile: Tile<'_, f32>, scores: &mut [[f32; KEYS]]) {
    score_in_groups(q, tile, |_| {}, L::load, scores);
}

per_isa! {
    fn score_halves(
        isa, q: &[f32], tile: Tile<'_, f16>, next: Tile<'_, f16>, scores: &mut [[f32; KEYS]],
    ) = score_half_rows::<L>;
}

#[inline(always)]
fn score_half_rows<L: SimdF32x16>(q: &[f32], tile: Tile<'_, f16>, next: Tile<'_, f16>, scores: &mut [[f32; KEYS]]) {
    // Both halves of the next tile, a line of either for each dimension.
    let fetch = |d: usize| {
        prefetch(&raw const next.keys[d * KEYS]);
        prefetch(&raw const next.values[d * KEYS]);
    };
    score_in_groups(q, tile, fetch, L::load_halves, scores);
}

#[inline(always)]
fn score_in_groups<L: SimdF32x16, T: Copy>(
    q: &[f32],
    tile: Tile<'_, T>,
    fetch: impl Fn(usize) + Copy,
    load: impl Fn(&[T; 16]) -> L + Copy,
    scores: &mut [[f32; KEYS]],
) {
    let dim = q.len() / scores.len();
    for (q, scores) in q.chunks(L::PAIRS * dim).zip(scores.chunks_mut(L::PAIRS)) {
        match scores.len() {
            1 => score::<L, T, 1>(q, tile, fetch, load, scores),
            2 => score::<L, T, 2>(q, tile, fetch, load, scores),
            _ if L::PAIRS == 2 => {}
            3 => score::<L, T, 3>(q, tile, fetch, load, scores),
            4 => score::<L, T, 4>(q, tile, fetch, load, scores),
            5 => score::<L, T, 5>(q, tile, fetch, load, scores),
            6 => score::<L, T, 6>(q, tile, fetch, load, scores),
            7 => score::<L, T, 7>(q, tile, fetch, load, scores),
            _ => score::<L, T, 8>(q, tile, fetch, load, scores),
        }
    }
}

#[inline(always)]
fn score<L: SimdF32x16, T: Copy, const R: usize>(
    q: &[f32],
    tile: Tile<'_, T>,
    fetch: impl Fn(usize),
    load: impl Fn(&[T; 16]) -> L,
    scores: &mut [[f32; KEYS]],
) {
    let dim = q.len() / R;
    let (halves, _) = tile.keys.as_chunks::<16>();
    let mut rows = [q; R];
    rows.iter_mut().enumerate().for_each(|(r, row)| *row = &q[r * dim..][..dim]);
    let mut sums = [[L::splat(0.0); 2]; R];
    for (d, keys) in halves.as_chunks::<2>().0[..dim].iter().enumerate() {
        fetch(d);
        let (low, high) = (load(&keys[0]), load(&keys[1]));
        for (sum, row) in sums.iter_mut().zip(&rows) {
            let q = L::splat(row[d]);
            *sum = [q.mul_add(low, sum[0]), q.mul_add(high, sum[1])];
        }
    }
    for (sum, scores) in sums.into_iter().zip(scores) {
        let (halves, _) = scores.as_chunks_mut::<16>();
        sum[0].store(&mut halves[0]);
        sum[1].store(&mut halves[1]);
    }
}

per_isa! {
    fn add_floats(
        isa, tile: Tile<'_, f32>, keys: usize, shrink: &[f32], weights: &[[f32; KEYS]], out: &mut [f32],
    ) = add_rows::<L>;
}

#[inline(always)]
fn add_rows<L: SimdF32x16>(tile: Tile<'_, f32>, keys: usize, shrink: &[f32], weights: &[[f32; KEYS]], out: &mut [f32]) {
    add_in_groups(tile, keys, L::load, |x| x, shrink, weights, out);
}

per_isa! {
    fn add_halves(
        isa, tile: Tile<'_, f16>, keys: usize, shrink: &[f32], weights: &[[f32; KEYS]], out: &mut [f32],
    ) = add_half_rows::<L>;
}

#[inline(always)]
fn add_half_rows<L: SimdF32x16>(
    tile: Tile<'_, f16>,
    keys: usize,
    shrink: &[f32],
    weights: &[[f32; KEYS]],
    out: &mut [f32],
) {
    add_in_groups(tile, keys, L::load_halves, f16::to_f32, shrink, weights, out);
}

#[inline(always)]
fn add_in_groups<L: SimdF32x16, T: Copy>(
    tile: Tile<'_, T>,
    keys: usize,
    load: impl Fn(&[T; 16]) -> L + Copy,
    wide: impl Fn(T) -> f32 + Copy,
    shrink: &[f32],
    weights: &[[f32; KEYS]],
    out: &mut [f32],
) {
    let dim = out.len() / weights.len();
    let rows = shrink.chunks(L::PAIRS).zip(weights.chunks(L::PAIRS)).zip(out.chunks_mut(L::PAIRS * dim));
    for ((shrink, weights), out) in rows {
        match weights.len() {
            1 => add::<L, T, 1>(tile, keys, load, wide, shrink, weights, out),
            2 => add::<L, T, 2>(tile, keys, load, wide, shrink, weights, out),
            _ if L::PAIRS == 2 => {}
            3 => add::<L, T, 3>(tile, keys, load, wide, shrink, weights, out),
            4 => add::<L, T, 4>(tile, keys, load, wide, shrink, weights, out),
            5 => add::<L, T, 5>(tile, keys, load, wide, shrink, weights, out),
            6 => add::<L, T, 6>(tile, keys, load, wide, shrink, weights, out),
            7 => add::<L, T, 7>(tile, keys, load, wide, shrink, weights, out),
            _ => add::<L, T, 8>(tile, keys, load, wide, shrink, weights, out),
        }
    }
}

/// Two registers of every row at a time.
#[inline(always)]
fn add<L: SimdF32x16, T: Copy, const R: usize>(
    tile: Tile<'_, T>,
    keys: usize,
    load: impl Fn(&[T; 16]) -> L,
    wide: impl Fn(T) -> f32,
    shrink: &[f32],
    weights: &[[f32; KEYS]],
    out: &mut [f32],
) {
    // As many as R says, so that the sums stay in registers.
    let weights = weights.first_chunk::<R>().expect("weights of R rows");
    let dim = out.len() / R;
    let whole = dim / 32 * 32;
    for start in (0..whole).step_by(32) {
        let mut sums = [[L::splat(0.0); 2]; R];
        for (r, sum) in sums.iter_mut().enumerate() {
            let (out, _) = out[r * dim + start..][..32].as_chunks::<16>();
            *sum = [L::load(&out[0]).mul(L::splat(shrink[r])), L::load(&out[1]).mul(L::splat(shrink[r]))];
        }
        for (j, value) in tile.values.chunks_exact(dim).take(keys).enumerate() {
            let (value, _) = value[start..][..32].as_chunks::<16>();
            let (low, high) = (load(&value[0]), load(&value[1]));
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
            *out = terms.fold(*out * shrink[r], |sum, (weight, value)| weight.mul_add(wide(value[i]), sum));
        }
    }
}
