//! Sixteen numbers in two 256-bit registers, with AVX-VNNI's dot product where the processor has it.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "only code that `per_isa!` has compiled for this instruction set, and that runs only where the processor has it, uses this type; loads and stores are of whole arrays"
)]

use std::arch::asm;
use std::arch::x86_64::*;

use half::f16;

use super::SimdF32x16;
use crate::cpu::Isa;

/// Two 256-bit registers; `VNNI` says which instruction multiplies bytes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2<const VNNI: bool>([__m256; 2]);

impl<const VNNI: bool> Avx2<VNNI> {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(__m256, __m256) -> __m256) -> Self {
        Avx2([f(self.0[0], other.0[0]), f(self.0[1], other.0[1])])
    }
}

/// `x · 2^n`. No closure: code that is not inlined is compiled without these instructions.
#[inline(always)]
fn scale_eight(x: __m256, n: __m256) -> __m256 {
    unsafe {
        // Two factors, since 2^128 alone is no f32.
        let n = _mm256_cvtps_epi32(n);
        let half = _mm256_srai_epi32::<1>(n);
        let power = |n| _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(n, _mm256_set1_epi32(127))));
        _mm256_mul_ps(_mm256_mul_ps(x, power(half)), power(_mm256_sub_epi32(n, half)))
    }
}

/// An empty assembly block that the compiler may not reorder with others of its kind.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn here([mut low, mut high]: [__m256i; 2]) -> [__m256i; 2] {
    unsafe { asm!("/* {0} {1} */", inout(ymm_reg) low, inout(ymm_reg) high, options(nomem, nostack, preserves_flags)) };
    [low, high]
}

impl<const VNNI: bool> SimdF32x16 for Avx2<VNNI> {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Avx2([unsafe { _mm256_set1_ps(x) }; 2])
    }

    #[inline(always)]
    fn load(x: &[f32; 16]) -> Self {
        Avx2(unsafe { [_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(x.as_ptr().add(8))] })
    }

    #[inline(always)]
    fn load_halves(x: &[f16; 16]) -> Self {
        unsafe {
            let start = x.as_ptr().cast::<__m128i>();
            let eight = |i| _mm256_cvtph_ps(_mm_loadu_si128(start.add(i)));
            Avx2([eight(0), eight(1)])
        }
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; 16]) {
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), self.0[0]);
            _mm256_storeu_ps(out.as_mut_ptr().add(8), self.0[1]);
        }
    }

    #[inline(always)]
    fn store_halves(self, out: &mut [f16; 16]) {
        unsafe {
            let start = out.as_mut_ptr().cast::<__m128i>();
            _mm_storeu_si128(start, _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0[0]));
            _mm_storeu_si128(start.add(1), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0[1]));
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_add_ps(a, b) })
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_sub_ps(a, b) })
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_mul_ps(a, b) })
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_div_ps(a, b) })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_max_ps(a, b) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_min_ps(a, b) })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        let part = |i: usize| unsafe { _mm256_fmadd_ps(self.0[i], factor.0[i], term.0[i]) };
        Avx2([part(0), part(1)])
    }

    #[inline(always)]
    fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        Avx2(self.0.map(|x| unsafe { _mm256_round_ps::<NEAREST>(x) }))
    }

    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        Avx2([scale_eight(self.0[0], n.0[0]), scale_eight(self.0[1], n.0[1])])
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Avx2(self.0.map(|x| unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), x) }))
    }

    #[inline(always)]
    fn store_i8s(self, out: &mut [i8; 16]) -> i32 {
        unsafe {
            let [low, high] = [_mm256_cvtps_epi32(self.0[0]), _mm256_cvtps_epi32(self.0[1])];
            // Packing works within halves of registers; the permutation puts the quarters in order again.
            let words = _mm256_permute4x64_epi64::<0b1101_1000>(_mm256_packs_epi32(low, high));
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(out.as_mut_ptr().cast(), bytes);
            let eight = _mm256_add_epi32(low, high);
            let four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
            let two = _mm_add_epi32(four, _mm_srli_si128::<8>(four));
            _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_srli_si128::<4>(two)))
        }
    }

    #[inline(always)]
    fn zero_below(self, x: Self, bound: f32) -> Self {
        self.zip(x, |value, x| unsafe {
            _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(x, _mm256_set1_ps(bound)), value)
        })
    }

    type Bytes = [__m256i; 2];
    type Ints = [__m256i; 2];
    const ISA: Isa = if VNNI { Isa::AvxVnni } else { Isa::Avx2 };
    const ZERO_OF_BYTES: i32 = if VNNI { 128 } else { 0 };

    #[inline(always)]
    fn from_f32s(x: &[u8; 64]) -> Self {
        let start = x.as_ptr().cast::<f32>();
        Avx2(unsafe { [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))] })
    }

    #[inline(always)]
    fn from_halves(x: &[u8; 32]) -> Self {
        let start = x.as_ptr().cast::<__m128i>();
        Avx2(unsafe { [_mm256_cvtph_ps(_mm_loadu_si128(start)), _mm256_cvtph_ps(_mm_loadu_si128(start.add(1)))] })
    }

    #[inline(always)]
    fn from_bf16s(x: &[u8; 32]) -> Self {
        let start = x.as_ptr().cast::<__m128i>();
        let eight = |i| unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(start.add(i)));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        };
        Avx2([eight(0), eight(1)])
    }

    #[inline(always)]
    fn from_u8s(x: &[u8; 16]) -> Self {
        unsafe {
            let x = _mm_loadu_si128(x.as_ptr().cast());
            let eight = |x| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(x));
            Avx2([eight(x), eight(_mm_srli_si128::<8>(x))])
        }
    }

    #[inline(always)]
    fn from_i8s(x: &[u8; 16]) -> Self {
        unsafe {
            let x = _mm_loadu_si128(x.as_ptr().cast());
            let eight = |x| _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x));
            Avx2([eight(x), eight(_mm_srli_si128::<8>(x))])
        }
    }

    #[inline(always)]
    fn from_i32s(x: &[i32; 16]) -> Self {
        let start = x.as_ptr().cast::<__m256i>();
        Self::from_ints(unsafe { [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))] })
    }

    #[inline(always)]
    fn from_ints(x: [__m256i; 2]) -> Self {
        Avx2(unsafe { [_mm256_cvtepi32_ps(x[0]), _mm256_cvtepi32_ps(x[1])] })
    }

    #[inline(always)]
    fn bytes(x: &[u8; 64]) -> [__m256i; 2] {
        let start = x.as_ptr().cast::<__m256i>();
        unsafe { [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))] }
    }

    #[inline(always)]
    fn to_bytes(x: [__m256i; 2]) -> [u8; 64] {
        let mut out = [0; 64];
        let start = out.as_mut_ptr().cast::<__m256i>();
        unsafe {
            _mm256_storeu_si256(start, x[0]);
            _mm256_storeu_si256(start.add(1), x[1]);
        }
        out
    }

    #[inline(always)]
    fn and(x: [__m256i; 2], mask: u8) -> [__m256i; 2] {
        unsafe {
            let mask = _mm256_set1_epi8(mask.cast_signed());
            [_mm256_and_si256(x[0], mask), _mm256_and_si256(x[1], mask)]
        }
    }

    #[inline(always)]
    fn or(x: [__m256i; 2], y: [__m256i; 2]) -> [__m256i; 2] {
        unsafe { [_mm256_or_si256(x[0], y[0]), _mm256_or_si256(x[1], y[1])] }
    }

    #[inline(always)]
    fn shift_left(x: [__m256i; 2], by: i32) -> [__m256i; 2] {
        unsafe {
            let by = _mm_cvtsi32_si128(by);
            [_mm256_sll_epi16(x[0], by), _mm256_sll_epi16(x[1], by)]
        }
    }

    #[inline(always)]
    fn shift_right(x: [__m256i; 2], by: i32) -> [__m256i; 2] {
        unsafe {
            let by = _mm_cvtsi32_si128(by);
            [_mm256_srl_epi16(x[0], by), _mm256_srl_epi16(x[1], by)]
        }
    }

    #[inline(always)]
    fn looked_up(x: [__m256i; 2], table: &[u8; 16]) -> [__m256i; 2] {
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            [_mm256_shuffle_epi8(table, x[0]), _mm256_shuffle_epi8(table, x[1])]
        }
    }

    #[inline(always)]
    fn ints(x: i32) -> [__m256i; 2] {
        [unsafe { _mm256_set1_epi32(x) }; 2]
    }

    #[inline(always)]
    fn bytes_here(x: [__m256i; 2]) -> [__m256i; 2] {
        unsafe { here(x) }
    }

    #[inline(always)]
    fn partial_here(x: [__m256i; 2]) -> [__m256i; 2] {
        unsafe { here(x) }
    }

    /// Without VNNI a dot adds a pair of products, at most 2 · 127 · `largest`, to sums of 16 bits.
    #[inline(always)]
    fn together(largest: i32) -> usize {
        match i32::from(i16::MAX) / (2 * 127 * largest) {
            _ if VNNI => usize::MAX,
            8.. => 8,
            4.. => 4,
            2.. => 2,
            _ => 1,
        }
    }

    #[inline(always)]
    fn begin(sum: [__m256i; 2]) -> [__m256i; 2] {
        if VNNI { sum } else { [unsafe { _mm256_setzero_si256() }; 2] }
    }

    #[inline(always)]
    fn end(sum: [__m256i; 2], partial: [__m256i; 2]) -> [__m256i; 2] {
        if VNNI {
            return partial;
        }
        // Neighbours are added up on their way to 32 bits.
        let part = |i: usize| unsafe { _mm256_add_epi32(sum[i], _mm256_madd_epi16(partial[i], _mm256_set1_epi16(1))) };
        [part(0), part(1)]
    }

    #[inline(always)]
    fn dot(partial: [__m256i; 2], w: [__m256i; 2], a: &[i8; 4]) -> [__m256i; 2] {
        unsafe {
            let a = _mm256_set1_epi32(a.as_ptr().cast::<i32>().read_unaligned());
            let part = |i: usize| match VNNI {
                true => _mm256_dpbusd_avx_epi32(partial[i], w[i], a),
                false => _mm256_add_epi16(partial[i], _mm256_maddubs_epi16(w[i], a)),
            };
            [part(0), part(1)]
        }
    }

    /// Without VNNI, `vpmaddubsw` saturates at 16 bits, so weights go in as magnitudes with their signs moved to the activations: then
    /// a pair is at most 2 · 128 · 127, which fits.
    #[inline(always)]
    fn dot_bytes(partial: [__m256i; 2], w: [__m256i; 2], a: &[i8; 4]) -> [__m256i; 2] {
        if VNNI {
            return Self::dot(partial, w, a);
        }
        unsafe {
            let a = _mm256_set1_epi32(a.as_ptr().cast::<i32>().read_unaligned());
            let part = |i: usize| {
                let w = _mm256_xor_si256(w[i], _mm256_set1_epi8(-128));
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
                _mm256_add_epi16(partial[i], pairs)
            };
            [part(0), part(1)]
        }
    }
}
