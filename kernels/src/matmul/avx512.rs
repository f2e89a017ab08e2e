//! AVX-512 VNNI body of the quantised product: one `vpdpbusd` multiplies four columns of 16 weight rows.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use super::matrix::Tile;

/// Rows of activations held in registers: 8 integer and 8 `f32` accumulators of 16 lanes.
pub(super) const ROWS: usize = 8;

/// Multiplies `R` rows with one panel and returns `[R, 16]` sums.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
pub(super) fn multiply<const R: usize>(tile: &Tile<'_>, first_row: usize) -> [[f32; 16]; R] {
    let Tile { panel, x, zero, group_len } = *tile;
    let steps = group_len / 4;
    let mut sums = [_mm512_setzero_ps(); R];
    for (group, d) in panel.d.as_chunks::<16>().0.iter().enumerate() {
        let mut dots: [__m512i; R] = std::array::from_fn(|r| _mm512_set1_epi32(-zero * tile.sum(first_row + r, group)));
        let weights = &panel.q[group * group_len * 16..][..group_len * 16];
        for step in 0..steps {
            // SAFETY: `weights` has `steps` runs of 64 bytes.
            let w = unsafe { _mm512_loadu_si512(weights.as_ptr().add(64 * step).cast()) };
            for (r, dot) in dots.iter_mut().enumerate() {
                let k = (first_row + r) * x.cols + group * group_len + 4 * step;
                let four: [i8; 4] = x.q[k..k + 4].try_into().unwrap_or_default();
                let a = _mm512_set1_epi32(i32::from_le_bytes(four.map(i8::cast_unsigned)));
                *dot = _mm512_dpbusd_epi32(*dot, w, a);
            }
        }
        // SAFETY: an array of 16 `f32`.
        let d = unsafe { _mm512_loadu_ps(d.as_ptr()) };
        for r in 0..R {
            let a = tile.scale(first_row + r, group);
            sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r]), _mm512_mul_ps(d, _mm512_set1_ps(a)), sums[r]);
        }
        if let Some(m) = panel.m.get(group * 16..group * 16 + 16) {
            // SAFETY: a slice of 16 `f32`.
            let m = unsafe { _mm512_loadu_ps(m.as_ptr()) };
            for (r, sum) in sums.iter_mut().enumerate() {
                let a = tile.scale(first_row + r, group) * tile.sum(first_row + r, group) as f32;
                *sum = _mm512_fmadd_ps(m, _mm512_set1_ps(a), *sum);
            }
        }
    }
    sums.map(|sum| {
        let mut out = [0f32; 16];
        // SAFETY: an array of 16 `f32`.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sum) };
        out
    })
}
