//! Sixteen numbers in one 512-bit register, and the dot product of VNNI.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "only code that `per_isa!` has compiled for this instruction set, and that runs only where the processor has it, uses this type; loads and stores are of whole arrays"
)]

use std::arch::x86_64::*;

use half::f16;

use super::{InBf16, SimdF32x16};
use crate::cpu::Isa;

/// One 512-bit register.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

impl SimdF32x16 for Avx512 {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Avx512(unsafe { _mm512_set1_ps(x) })
    }

    #[inline(always)]
    fn load(x: &[f32; 16]) -> Self {
        Avx512(unsafe { _mm512_loadu_ps(x.as_ptr()) })
    }

    #[inline(always)]
    fn load_halves(x: &[f16; 16]) -> Self {
        Avx512(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(x.as_ptr().cast())) })
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; 16]) {
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn store_halves(self, out: &mut [f16; 16]) {
        let halves = unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0) };
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), halves) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_div_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_min_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Avx512(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }

    #[inline(always)]
    fn round(self) -> Self {
        Avx512(unsafe { _mm512_roundscale_ps::<0>(self.0) })
    }

    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        Avx512(unsafe { _mm512_scalef_ps(self.0, n.0) })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Avx512(unsafe { _mm512_abs_ps(self.0) })
    }

    #[inline(always)]
    fn store_i8s(self, out: &mut [i8; 16]) -> i32 {
        unsafe {
            let ints = _mm512_cvtps_epi32(self.0);
            _mm_storeu_si128(out.as_mut_ptr().cast(), _mm512_cvtsepi32_epi8(ints));
            _mm512_reduce_add_epi32(ints)
        }
    }

    #[inline(always)]
    fn zero_below(self, x: Self, bound: f32) -> Self {
        Avx512(unsafe {
            let keep = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x.0, _mm512_set1_ps(bound));
            _mm512_maskz_mov_ps(keep, self.0)
        })
    }

    // As in the provided ones, without a way through memory.
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe {
            let eight = _mm256_add_ps(_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        unsafe {
            let eight = _mm256_max_ps(_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }

    type Bytes = __m512i;
    type Ints = __m512i;
    const ISA: Isa = Isa::Avx512;
    const ZERO_OF_BYTES: i32 = 128;
    const PAIRS: usize = 8;
    const ROWS: usize = 8;
    const DENSE_ROWS: usize = 8;

    #[inline(always)]
    fn from_f32s(x: &[u8; 64]) -> Self {
        Avx512(unsafe { _mm512_loadu_ps(x.as_ptr().cast()) })
    }

    #[inline(always)]
    fn from_halves(x: &[u8; 32]) -> Self {
        Avx512(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(x.as_ptr().cast())) })
    }

    #[inline(always)]
    fn from_bf16s(x: &[u8; 32]) -> Self {
        Avx512(unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(x.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        })
    }

    #[inline(always)]
    fn from_u8s(x: &[u8; 16]) -> Self {
        Avx512(unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(x.as_ptr().cast()))) })
    }

    #[inline(always)]
    fn from_i8s(x: &[u8; 16]) -> Self {
        Avx512(unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(x.as_ptr().cast()))) })
    }

    #[inline(always)]
    fn from_i32s(x: &[i32; 16]) -> Self {
        Self::from_ints(unsafe { _mm512_loadu_si512(x.as_ptr().cast()) })
    }

    #[inline(always)]
    fn from_ints(x: __m512i) -> Self {
        Avx512(unsafe { _mm512_cvtepi32_ps(x) })
    }

    #[inline(always)]
    fn bytes(x: &[u8; 64]) -> __m512i {
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn to_bytes(x: __m512i) -> [u8; 64] {
        let mut out = [0; 64];
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), x) };
        out
    }

    #[inline(always)]
    fn and(x: __m512i, mask: u8) -> __m512i {
        unsafe { _mm512_and_si512(x, _mm512_set1_epi8(mask.cast_signed())) }
    }

    #[inline(always)]
    fn or(x: __m512i, y: __m512i) -> __m512i {
        unsafe { _mm512_or_si512(x, y) }
    }

    #[inline(always)]
    fn shift_left(x: __m512i, by: i32) -> __m512i {
        unsafe { _mm512_sll_epi16(x, _mm_cvtsi32_si128(by)) }
    }

    #[inline(always)]
    fn shift_right(x: __m512i, by: i32) -> __m512i {
        unsafe { _mm512_srl_epi16(x, _mm_cvtsi32_si128(by)) }
    }

    #[inline(always)]
    fn looked_up(x: __m512i, table: &[u8; 16]) -> __m512i {
        unsafe { _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())), x) }
    }

    #[inline(always)]
    fn ints(x: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(x) }
    }

    #[inline(always)]
    fn dot(sum: __m512i, w: __m512i, a: &[i8; 4]) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sum, w, _mm512_set1_epi32(a.as_ptr().cast::<i32>().read_unaligned())) }
    }

    #[inline(always)]
    fn dot_bytes(sum: __m512i, w: __m512i, a: &[i8; 4]) -> __m512i {
        Self::dot(sum, w, a)
    }

    #[inline(always)]
    fn interleave(x: &[u8; 64], out: &mut [u16; 32]) {
        unsafe {
            let order: [u16; 32] = std::array::from_fn(|i| (16 * (i % 2) + i / 2) as u16);
            let order = _mm512_loadu_si512(order.as_ptr().cast());
            let x = _mm512_permutexvar_epi16(order, _mm512_loadu_si512(x.as_ptr().cast()));
            _mm512_storeu_si512(out.as_mut_ptr().cast(), x);
        }
    }
}

impl InBf16 for Avx512 {
    #[inline(always)]
    fn store_bf16s(low: Self, high: Self, out: &mut [u16; 32]) {
        unsafe {
            let rounded = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high.0, low.0));
            _mm512_storeu_si512(out.as_mut_ptr().cast(), rounded);
        }
    }
}
