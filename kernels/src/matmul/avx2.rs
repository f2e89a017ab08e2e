//! AVX2 body of the quantised product: pairs of bytes to 16 bits, pairs of those to 32.
//!
//! `vpmaddubsw` saturates at 16 bits, so 8-bit weights go in as magnitudes with their signs moved to the activations:
//! then a pair is at most 2 · 128 · 127, which fits.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use super::matrix::Tile;

/// Rows of activations held in registers, for 8 of the 16 columns at a time.
pub(super) const ROWS: usize = 4;

/// Multiplies `R` rows with one panel and returns `[R, 16]` sums.
#[target_feature(enable = "avx2,fma")]
pub(super) fn multiply<const R: usize>(tile: &Tile<'_>, first_row: usize) -> [[f32; 16]; R] {
    let mut out = [[0f32; 16]; R];
    for half in 0..2 {
        let sums = if tile.zero == 128 {
            multiply_half::<R>(tile, first_row, half, 0, |w, a| {
                let w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
                _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w))
            })
        } else {
            multiply_half::<R>(tile, first_row, half, tile.zero, |w, a| _mm256_maddubs_epi16(w, a))
        };
        for (out, sum) in out.iter_mut().zip(sums) {
            // SAFETY: eight `f32` at 0 or 8 of 16.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(8 * half), sum) };
        }
    }
    out
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn multiply_half<const R: usize>(
    tile: &Tile<'_>,
    first_row: usize,
    half: usize,
    zero: i32,
    pairs: impl Fn(__m256i, __m256i) -> __m256i,
) -> [__m256; R] {
    let Tile { panel, x, group_len, .. } = *tile;
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_ps(); R];
    for (group, d) in panel.d.as_chunks::<16>().0.iter().enumerate() {
        let mut dots: [__m256i; R] = std::array::from_fn(|r| _mm256_set1_epi32(-zero * tile.sum(first_row + r, group)));
        let weights = &panel.q[group * group_len * 16..][..group_len * 16];
        for step in 0..group_len / 4 {
            // SAFETY: 32 bytes at 0 or 32 of run `step` of 64.
            let w = unsafe { _mm256_loadu_si256(weights.as_ptr().add(64 * step + 32 * half).cast()) };
            for (r, dot) in dots.iter_mut().enumerate() {
                let k = (first_row + r) * x.cols + group * group_len + 4 * step;
                let four: [i8; 4] = x.q[k..k + 4].try_into().unwrap_or_default();
                let a = _mm256_set1_epi32(i32::from_le_bytes(four.map(i8::cast_unsigned)));
                *dot = _mm256_add_epi32(*dot, _mm256_madd_epi16(pairs(w, a), ones));
            }
        }
        // SAFETY: eight `f32` at 0 or 8 of 16.
        let d = unsafe { _mm256_loadu_ps(d.as_ptr().add(8 * half)) };
        for r in 0..R {
            let a = tile.scale(first_row + r, group);
            sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[r]), _mm256_mul_ps(d, _mm256_set1_ps(a)), sums[r]);
        }
        if let Some(m) = panel.m.get(group * 16..group * 16 + 16) {
            // SAFETY: eight `f32` at 0 or 8 of 16.
            let m = unsafe { _mm256_loadu_ps(m.as_ptr().add(8 * half)) };
            for (r, sum) in sums.iter_mut().enumerate() {
                let a = tile.scale(first_row + r, group) * tile.sum(first_row + r, group) as f32;
                *sum = _mm256_fmadd_ps(m, _mm256_set1_ps(a), *sum);
            }
        }
    }
    sums
}
