//! Keys and values in 8 bits: 32 neighbouring dimensions of one key or value share a scale, as in ggml's Q8_0.
//!
//! A head's keys of a page are `[D, 32]` bytes and `[D/32, 32]` scales in f16; its values are `[32, D]` bytes and `[32, D/32]`
//! scales. A key or value depends on no other, so chunks and neighbours change no bits.

use half::f16;

use super::heads::KEYS;
use crate::cpu::Isa;
use crate::math::largest_magnitude;
use crate::per_isa::per_isa;
use crate::simd::SimdF32x16;

/// Dimensions that share a scale.
pub(super) const BLOCK: usize = 32;

/// Bytes of a scale.
pub(super) const SCALE: usize = size_of::<f16>();

/// A block of a key or a value.
#[derive(Debug, Clone, Copy)]
struct Block {
    scale: f16,
    values: [i8; BLOCK],
}

impl Block {
    fn of(isa: Isa, floats: &[f32; BLOCK]) -> Block {
        let mut block = Block { scale: f16::ZERO, values: [0; BLOCK] };
        quantise(isa, floats, &mut block);
        block
    }
}

per_isa! {
    fn quantise(isa, floats: &[f32; BLOCK], block: &mut Block) = quantise_floats;
}

#[inline(always)]
fn quantise_floats(floats: &[f32; BLOCK], block: &mut Block) {
    block.scale = f16::from_f32(largest_magnitude(floats) / 127.0);
    let inverse = if block.scale == f16::ZERO { 0.0 } else { 1.0 / block.scale.to_f32() };
    for (value, x) in block.values.iter_mut().zip(floats) {
        *value = (x * inverse).round_ties_even().clamp(-127.0, 127.0) as i8;
    }
}

/// What is kept of a key or a value: `[D]`.
pub fn rounded(isa: Isa, head: &[f32]) -> Vec<f32> {
    let block = |floats: &[f32; BLOCK]| {
        let Block { scale, values } = Block::of(isa, floats);
        values.map(|value| f32::from(value) * scale.to_f32())
    };
    head.as_chunks().0.iter().flat_map(block).collect()
}

/// Writes the key of the token at `offset` into a head's keys of a page.
pub(super) fn write_key(isa: Isa, tile: &mut [u8], offset: usize, key: &[f32]) {
    let (bytes, scales) = tile.split_at_mut(key.len() * KEYS);
    for (at, floats) in key.as_chunks().0.iter().enumerate() {
        let Block { scale, values } = Block::of(isa, floats);
        let rows = bytes[at * BLOCK * KEYS..].chunks_exact_mut(KEYS);
        rows.zip(values).for_each(|(row, value)| row[offset] = value.cast_unsigned());
        scales[(at * KEYS + offset) * SCALE..][..SCALE].copy_from_slice(&scale.to_le_bytes());
    }
}

/// Writes the value of the token at `offset` into a head's values of a page.
pub(super) fn write_value(isa: Isa, tile: &mut [u8], offset: usize, value: &[f32]) {
    let (bytes, scales) = tile.split_at_mut(value.len() * KEYS);
    let blocks = value.len() / BLOCK;
    for (at, floats) in value.as_chunks().0.iter().enumerate() {
        let Block { scale, values } = Block::of(isa, floats);
        bytes[offset * value.len() + at * BLOCK..][..BLOCK].copy_from_slice(&values.map(i8::cast_unsigned));
        scales[(offset * blocks + at) * SCALE..][..SCALE].copy_from_slice(&scale.to_le_bytes());
    }
}

/// Scales that are widened together.
const LANES: usize = 16;

/// Up to [`LANES`] scales in `f32`.
#[inline(always)]
fn scales_of<L: SimdF32x16>(bytes: &[u8]) -> [f32; LANES] {
    let mut halves = [f16::ZERO; LANES];
    let (pairs, _) = bytes.as_chunks::<SCALE>();
    halves.iter_mut().zip(pairs).for_each(|(half, bytes)| *half = f16::from_le_bytes(*bytes));
    let mut scales = [0f32; LANES];
    L::load_halves(&halves).store(&mut scales);
    scales
}

per_isa! {
    /// The keys of a head in `f32`: `[D, 32]`.
    pub(super) fn widen_keys(isa, tile: &[u8], out: &mut [f32]) = keys_in_floats::<L>;
}

#[inline(always)]
fn keys_in_floats<L: SimdF32x16>(tile: &[u8], out: &mut [f32]) {
    let (bytes, scales) = tile.split_at(out.len());
    let blocks = bytes.chunks_exact(BLOCK * KEYS).zip(out.chunks_exact_mut(BLOCK * KEYS));
    for ((bytes, out), scales) in blocks.zip(scales.chunks_exact(KEYS * SCALE)) {
        let (low, high) = scales.split_at(LANES * SCALE);
        let scales = [scales_of::<L>(low), scales_of::<L>(high)];
        for (row, out) in bytes.as_chunks::<KEYS>().0.iter().zip(out.as_chunks_mut::<KEYS>().0) {
            for key in 0..KEYS {
                out[key] = f32::from(row[key].cast_signed()) * scales.as_flattened()[key];
            }
        }
    }
}

per_isa! {
    /// The values of a head in `f32`: `[32, D]`.
    pub(super) fn widen_values(isa, tile: &[u8], out: &mut [f32]) = values_in_floats::<L>;
}

#[inline(always)]
fn values_in_floats<L: SimdF32x16>(tile: &[u8], out: &mut [f32]) {
    let (bytes, scales) = tile.split_at(out.len());
    let blocks = bytes.chunks(LANES * BLOCK).zip(out.chunks_mut(LANES * BLOCK));
    for ((bytes, out), scales) in blocks.zip(scales.chunks(LANES * SCALE)) {
        let scales = scales_of::<L>(scales);
        let rows = bytes.as_chunks::<BLOCK>().0.iter().zip(out.as_chunks_mut::<BLOCK>().0);
        for ((bytes, out), scale) in rows.zip(scales) {
            for at in 0..BLOCK {
                out[at] = f32::from(bytes[at].cast_signed()) * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_gives_what_is_kept() {
        for dim in [32, 64, 160] {
            let head = |token: usize| -> Vec<f32> {
                (0..dim).map(|d| ((d * 37 + token * 101) % 211) as f32 / 50.0 - 2.0).collect()
            };
            let tile_bytes = dim * KEYS + dim / BLOCK * KEYS * SCALE;
            for isa in Isa::available() {
                let (mut keys, mut values) = (vec![0u8; tile_bytes], vec![0u8; tile_bytes]);
                for token in [5, 0, 31] {
                    write_key(isa, &mut keys, token, &head(token));
                    write_value(isa, &mut values, token, &head(token));
                }
                let (mut wide_keys, mut wide_values) = (vec![f32::NAN; dim * KEYS], vec![f32::NAN; dim * KEYS]);
                widen_keys(isa, &keys, &mut wide_keys);
                widen_values(isa, &values, &mut wide_values);
                for token in 0..KEYS {
                    let want =
                        if [5, 0, 31].contains(&token) { rounded(Isa::Scalar, &head(token)) } else { vec![0.0; dim] };
                    let key: Vec<f32> = (0..dim).map(|d| wide_keys[d * KEYS + token]).collect();
                    assert_eq!(key, want, "{isa} key {token} of {dim}");
                    assert_eq!(wide_values[token * dim..][..dim], want, "{isa} value {token} of {dim}");
                }
            }
        }
    }

    #[test]
    fn the_largest_value_of_a_block_loses_a_half_step_at_most() {
        let head: Vec<f32> = (0..64).map(|d| (d as f32 - 40.0) * 1.7).collect();
        for (block, kept) in head.chunks(BLOCK).zip(rounded(Isa::Scalar, &head).chunks(BLOCK)) {
            let step = block.iter().fold(0f32, |largest, x| largest.max(x.abs())) / 127.0;
            // The scale is rounded to f16, which moves the largest value by up to 2^-11 of it.
            let most = step * (0.5 + 127.0 / 2048.0);
            assert!(block.iter().zip(kept).all(|(x, kept)| (x - kept).abs() <= most));
        }
        assert_eq!(rounded(Isa::Scalar, &[0.0; 32]), [0.0; 32]);
    }

    #[test]
    fn a_block_with_one_nan_is_nan() {
        for isa in Isa::available() {
            for at in 0..BLOCK {
                let mut head = [1.5f32; 64];
                head[at] = f32::NAN;
                let kept = rounded(isa, &head);
                assert!(kept[..BLOCK].iter().all(|x| x.is_nan()), "{isa}, dimension {at}");
                assert!(kept[BLOCK..].iter().all(|x| x.is_finite()), "{isa}, dimension {at}");
            }
        }
    }
}
