//! Keys and values in bf16, multiplied two at a time: on all processors but those with AMX, and there for heads whose dimensions are no
//! multiple of 32 (see `in_tiles`).
//!
//! A head's keys of a page are `[D/2, 32, 2]` and its values `[16, D, 2]`, so that a lane holds two neighbours of the sum: two
//! dimensions of a key, or two keys' values of a dimension. Queries and weights are rounded to bf16 likewise, and added as
//! [`PairSums`] does, so these ISAs give the same bits. AVX512-BF16 takes subnormal numbers for 0, so inputs are kept without them; sums
//! below 2^-126 may differ.

use half::bf16;

use super::KEYS;
use super::product::{Kept, Queries, Tile};
use super::tile::MAX_TOGETHER;
use crate::cpu::Isa;
use crate::per_isa::per_isa;
use crate::simd::pairs::{first, second};
use crate::simd::{PairSums, SimdF32x16, Widened, prefetch};

/// Lanes of a register.
const LANES: usize = 16;

/// The nearest bf16, ties to even, and 0 in place of a subnormal number.
pub fn in_bf16(x: f32) -> bf16 {
    let bits = x.to_bits();
    let nearest = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    let rounded = if x.is_nan() { (bits >> 16) as u16 | 0x40 } else { nearest };
    bf16::from_bits(if rounded & 0x7f80 == 0 { 0 } else { rounded })
}

/// Two numbers in one lane.
fn pair(first: f32, second: f32) -> u32 {
    u32::from(in_bf16(first).to_bits()) | u32::from(in_bf16(second).to_bits()) << 16
}

/// Writes the key of the token at `offset` into a head's keys of a page.
pub(super) fn write_key(keys: &mut [bf16], offset: usize, key: &[f32]) {
    for (row, key) in keys.chunks_exact_mut(2 * KEYS).zip(key.as_chunks::<2>().0) {
        row[2 * offset..][..2].copy_from_slice(&key.map(in_bf16));
    }
}

/// Writes the value of the token at `offset` into a head's values of a page.
pub(super) fn write_value(values: &mut [bf16], offset: usize, value: &[f32]) {
    let row = &mut values[offset / 2 * 2 * value.len()..][..2 * value.len()];
    row.iter_mut().skip(offset % 2).step_by(2).zip(value).for_each(|(slot, x)| *slot = in_bf16(*x));
}

per_isa! {
    /// Numbers as pairs of neighbours in bf16.
    pub(super) fn pack(isa, floats: &[f32], pairs: &mut [u32]) = pack_floats;
}

#[inline(always)]
fn pack_floats(floats: &[f32], pairs: &mut [u32]) {
    floats.as_chunks::<2>().0.iter().zip(pairs).for_each(|(x, out)| *out = pair(x[0], x[1]));
}

#[cfg(target_arch = "x86_64")]
mod unit {
    use half::bf16;

    use super::{Isa, KEYS, LANES, Tile, add_rows, score_rows};
    use crate::simd::Bf16Dots;

    pub(super) fn is_available(isa: Isa) -> bool {
        matches!(isa, Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx) && is_x86_feature_detected!("avx512bf16")
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,fma,avx2,f16c")]
    pub(super) fn score(q: &[u32], tile: Tile<'_, bf16>, next: Tile<'_, bf16>, scores: &mut [[f32; KEYS]]) {
        score_rows::<Bf16Dots>(q, tile, next, scores);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,fma,avx2,f16c")]
    pub(super) fn add(tile: Tile<'_, bf16>, keys: usize, shrink: &[f32], weights: &[[u32; LANES]], out: &mut [f32]) {
        add_rows::<Bf16Dots>(tile, keys, shrink, weights, out);
    }
}

impl Kept for bf16 {
    fn score(isa: Isa, q: Queries<'_>, tile: Tile<'_, bf16>, next: Tile<'_, bf16>, scores: &mut [[f32; KEYS]]) {
        #[cfg(target_arch = "x86_64")]
        if unit::is_available(isa) {
            // SAFETY: the processor has these instructions.
            return unsafe { unit::score(q.pairs, tile, next, scores) };
        }
        score_widened(isa, q.pairs, tile, next, scores);
    }

    fn add(isa: Isa, tile: Tile<'_, bf16>, keys: usize, shrink: &[f32], weights: &[[f32; KEYS]], out: &mut [f32]) {
        let mut pairs = [[0u32; LANES]; MAX_TOGETHER];
        let pairs = &mut pairs[..weights.len()];
        pack(isa, weights.as_flattened(), pairs.as_flattened_mut());
        #[cfg(target_arch = "x86_64")]
        if unit::is_available(isa) {
            // SAFETY: the processor has these instructions.
            return unsafe { unit::add(tile, keys, shrink, pairs, out) };
        }
        add_widened(isa, tile, keys, shrink, pairs, out);
    }
}

per_isa! {
    fn score_widened(
        isa, q: &[u32], tile: Tile<'_, bf16>, next: Tile<'_, bf16>, scores: &mut [[f32; KEYS]],
    ) = score_by_widening::<L>;
}

#[inline(always)]
fn score_by_widening<L: SimdF32x16>(q: &[u32], tile: Tile<'_, bf16>, next: Tile<'_, bf16>, scores: &mut [[f32; KEYS]]) {
    score_rows::<Widened<L>>(q, tile, next, scores);
}

per_isa! {
    fn add_widened(
        isa, tile: Tile<'_, bf16>, keys: usize, shrink: &[f32], weights: &[[u32; LANES]], out: &mut [f32],
    ) = add_by_widening::<L>;
}

#[inline(always)]
fn add_by_widening<L: SimdF32x16>(
    tile: Tile<'_, bf16>,
    keys: usize,
    shrink: &[f32],
    weights: &[[u32; LANES]],
    out: &mut [f32],
) {
    add_rows::<Widened<L>>(tile, keys, shrink, weights, out);
}

/// The number of rows that are computed together next, of those that are left.
#[inline(always)]
fn together<S: PairSums>(left: usize) -> usize {
    [8, 4, 2].into_iter().find(|rows| *rows <= S::ROWS && *rows <= left).unwrap_or(1)
}

#[inline(always)]
fn score_rows<S: PairSums>(q: &[u32], tile: Tile<'_, bf16>, next: Tile<'_, bf16>, scores: &mut [[f32; KEYS]]) {
    let (half, mut row) = (q.len() / scores.len(), 0);
    while row < scores.len() {
        let rows = together::<S>(scores.len() - row);
        let (q, scores) = (&q[row * half..][..rows * half], &mut scores[row..row + rows]);
        match rows {
            8 => score::<S, 8>(q, tile, next, scores),
            4 => score::<S, 4>(q, tile, next, scores),
            2 => score::<S, 2>(q, tile, next, scores),
            _ => score::<S, 1>(q, tile, next, scores),
        }
        row += rows;
    }
}

#[inline(always)]
fn score<S: PairSums, const R: usize>(
    q: &[u32],
    tile: Tile<'_, bf16>,
    next: Tile<'_, bf16>,
    scores: &mut [[f32; KEYS]],
) {
    let half = q.len() / R;
    let mut rows = [q; R];
    rows.iter_mut().enumerate().for_each(|(r, row)| *row = &q[r * half..][..half]);
    let mut sums = [[S::load(&[0.0; LANES]); 2]; R];
    for (at, keys) in tile.keys.as_chunks::<{ 2 * LANES }>().0.as_chunks::<2>().0[..half].iter().enumerate() {
        prefetch(&raw const next.keys[at * 2 * KEYS]);
        prefetch(&raw const next.keys[at * 2 * KEYS + KEYS]);
        prefetch(&raw const next.values[at * 2 * KEYS]);
        prefetch(&raw const next.values[at * 2 * KEYS + KEYS]);
        let (low, high) = (S::pairs(&keys[0]), S::pairs(&keys[1]));
        for (sum, row) in sums.iter_mut().zip(&rows) {
            *sum = [sum[0].add(low, row[at]), sum[1].add(high, row[at])];
        }
    }
    for (sum, scores) in sums.into_iter().zip(scores) {
        let (halves, _) = scores.as_chunks_mut::<LANES>();
        sum[0].store(&mut halves[0]);
        sum[1].store(&mut halves[1]);
    }
}

#[inline(always)]
fn add_rows<S: PairSums>(tile: Tile<'_, bf16>, keys: usize, shrink: &[f32], weights: &[[u32; LANES]], out: &mut [f32]) {
    let (dim, mut row) = (out.len() / weights.len(), 0);
    while row < weights.len() {
        let rows = together::<S>(weights.len() - row);
        let (shrink, weights) = (&shrink[row..row + rows], &weights[row..row + rows]);
        let out = &mut out[row * dim..][..rows * dim];
        match rows {
            8 => add::<S, 8>(tile, keys, shrink, weights, out),
            4 => add::<S, 4>(tile, keys, shrink, weights, out),
            2 => add::<S, 2>(tile, keys, shrink, weights, out),
            _ => add::<S, 1>(tile, keys, shrink, weights, out),
        }
        row += rows;
    }
}

/// Two registers of every row at a time, then the dimensions that are left one by one.
#[inline(always)]
fn add<S: PairSums, const R: usize>(
    tile: Tile<'_, bf16>,
    keys: usize,
    shrink: &[f32],
    weights: &[[u32; LANES]],
    out: &mut [f32],
) {
    let weights = weights.first_chunk::<R>().expect("weights of R rows");
    let dim = out.len() / R;
    let whole = dim / KEYS * KEYS;
    for start in (0..whole).step_by(KEYS) {
        let mut sums = [[S::load(&[0.0; LANES]); 2]; R];
        for (r, sum) in sums.iter_mut().enumerate() {
            let (out, _) = out[r * dim + start..][..KEYS].as_chunks::<LANES>();
            *sum = [S::load(&out[0]).times(shrink[r]), S::load(&out[1]).times(shrink[r])];
        }
        let mut values = tile.values.chunks_exact(2 * dim);
        for (at, values) in values.by_ref().take(keys / 2).enumerate() {
            let (values, _) = values[2 * start..][..2 * KEYS].as_chunks::<{ 2 * LANES }>();
            let (low, high) = (S::pairs(&values[0]), S::pairs(&values[1]));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = [sum[0].add(low, weights[at]), sum[1].add(high, weights[at])];
            }
        }
        // A key that is not visible may have any value, infinite ones too.
        if let Some(values) = values.next().filter(|_| keys % 2 == 1) {
            let (values, _) = values[2 * start..][..2 * KEYS].as_chunks::<{ 2 * LANES }>();
            let (low, high) = (S::firsts(&values[0]), S::firsts(&values[1]));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = [sum[0].add(low, weights[keys / 2]), sum[1].add(high, weights[keys / 2])];
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            let (out, _) = out[r * dim + start..][..KEYS].as_chunks_mut::<LANES>();
            sum[0].store(&mut out[0]);
            sum[1].store(&mut out[1]);
        }
    }
    for r in 0..R {
        for d in whole..dim {
            let out = &mut out[r * dim + d];
            let terms = weights[r].iter().zip(tile.values.chunks_exact(2 * dim)).take(keys.div_ceil(2)).enumerate();
            *out = terms.fold(*out * shrink[r], |sum, (at, (weight, values))| {
                let with_second = if 2 * at + 1 < keys { values[2 * d + 1].to_f32() } else { 0.0 };
                first(*weight).mul_add(values[2 * d].to_f32(), second(*weight).mul_add(with_second, sum))
            });
        }
    }
}
