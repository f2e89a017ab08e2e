//! Sums of products of bf16, two at a time.
//!
//! A step adds the products of a pair to each of 16 sums, the second first, each with one rounding. That is what AVX512-BF16 computes,
//! and what fused multiply-adds in `f32` give elsewhere, since every bf16 is a `f32`.

use half::bf16;

use super::SimdF32x16;

/// Lanes of a register.
const LANES: usize = 16;

/// Sixteen sums of products of pairs.
pub(crate) trait PairSums: Copy {
    /// Thirty-two bf16.
    type Pairs: Copy;
    /// Rows that are computed together: enough sums to hide the latency of a product.
    const ROWS: usize;
    fn load(sums: &[f32; LANES]) -> Self;
    fn store(self, out: &mut [f32; LANES]);
    fn times(self, factor: f32) -> Self;
    fn pairs(x: &[bf16; 2 * LANES]) -> Self::Pairs;
    /// The first of each pair, with 0 in place of the second.
    fn firsts(x: &[bf16; 2 * LANES]) -> Self::Pairs;
    /// Sixteen bf16 as a little-endian file holds them, each in a pair with one of the sixteen behind them.
    fn zipped(x: &[u8; 4 * LANES]) -> Self::Pairs;
    /// Adds the products with one pair.
    fn add(self, x: Self::Pairs, by: u32) -> Self;
}

/// Rounding to bf16 by one instruction, if it is compiled for AVX512-BF16.
pub(crate) trait InBf16: SimdF32x16 {
    /// [`crate::attention::in_bf16`] of sixteen numbers without negative zeros, then of sixteen more.
    fn store_bf16s(low: Self, high: Self, out: &mut [u16; 2 * LANES]);
}

impl InBf16 for super::Plain {
    #[inline(always)]
    fn store_bf16s(low: Self, high: Self, out: &mut [u16; 2 * LANES]) {
        let mut floats = [[0f32; LANES]; 2];
        low.store(&mut floats[0]);
        high.store(&mut floats[1]);
        out.iter_mut().zip(floats.as_flattened()).for_each(|(out, x)| *out = crate::attention::in_bf16(*x).to_bits());
    }
}

/// By fused multiply-adds.
#[derive(Clone, Copy)]
pub(crate) struct Widened<L>(L);

pub(crate) fn first(pair: u32) -> f32 {
    f32::from_bits(pair << 16)
}

pub(crate) fn second(pair: u32) -> f32 {
    f32::from_bits(pair & 0xffff_0000)
}

impl<L: SimdF32x16> PairSums for Widened<L> {
    type Pairs = (L, L);
    const ROWS: usize = L::PAIRS;

    #[inline(always)]
    fn load(sums: &[f32; LANES]) -> Self {
        Widened(L::load(sums))
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        self.0.store(out);
    }

    #[inline(always)]
    fn times(self, factor: f32) -> Self {
        Widened(self.0.mul(L::splat(factor)))
    }

    #[inline(always)]
    fn pairs(x: &[bf16; 2 * LANES]) -> (L, L) {
        // SAFETY: both are 64 bytes. Read as words, so that they are converted in registers and not one by one.
        let words: [u32; LANES] = unsafe { x.as_ptr().cast::<[u32; LANES]>().read_unaligned() };
        (L::load(&words.map(first)), L::load(&words.map(second)))
    }

    #[inline(always)]
    fn firsts(x: &[bf16; 2 * LANES]) -> (L, L) {
        (Self::pairs(x).0, L::splat(0.0))
    }

    #[inline(always)]
    fn zipped(x: &[u8; 4 * LANES]) -> (L, L) {
        let (halves, _) = x.as_chunks::<{ 2 * LANES }>();
        (L::from_bf16s(&halves[0]), L::from_bf16s(&halves[1]))
    }

    #[inline(always)]
    fn add(self, x: (L, L), by: u32) -> Self {
        Widened(L::splat(first(by)).mul_add(x.0, L::splat(second(by)).mul_add(x.1, self.0)))
    }
}

/// By the dot product of AVX512-BF16 (AMD since Zen 4, Intel server processors since 2020).
#[cfg(target_arch = "x86_64")]
mod unit {
    #![allow(
        clippy::undocumented_unsafe_blocks,
        reason = "only functions that are compiled for this instruction set, and that run only where the processor has it, use this type; loads and stores are of whole arrays"
    )]

    use std::arch::x86_64::*;
    use std::mem::transmute;

    use half::bf16;

    use super::{LANES, PairSums};

    #[derive(Clone, Copy)]
    pub(crate) struct Bf16Dots(__m512);

    impl PairSums for Bf16Dots {
        type Pairs = __m512i;
        const ROWS: usize = 8;

        #[inline(always)]
        fn load(sums: &[f32; LANES]) -> Self {
            Bf16Dots(unsafe { _mm512_loadu_ps(sums.as_ptr()) })
        }

        #[inline(always)]
        fn store(self, out: &mut [f32; LANES]) {
            unsafe { _mm512_storeu_ps(out.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn times(self, factor: f32) -> Self {
            Bf16Dots(unsafe { _mm512_mul_ps(self.0, _mm512_set1_ps(factor)) })
        }

        #[inline(always)]
        fn pairs(x: &[bf16; 2 * LANES]) -> __m512i {
            unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
        }

        #[inline(always)]
        fn firsts(x: &[bf16; 2 * LANES]) -> __m512i {
            unsafe { _mm512_and_si512(Self::pairs(x), _mm512_set1_epi32(0xffff)) }
        }

        #[inline(always)]
        fn zipped(x: &[u8; 4 * LANES]) -> __m512i {
            unsafe {
                let order: [u16; 2 * LANES] = std::array::from_fn(|i| (LANES * (i % 2) + i / 2) as u16);
                let order = _mm512_loadu_si512(order.as_ptr().cast());
                _mm512_permutexvar_epi16(order, _mm512_loadu_si512(x.as_ptr().cast()))
            }
        }

        #[inline(always)]
        fn add(self, x: __m512i, by: u32) -> Self {
            unsafe {
                let by = _mm512_set1_epi32(by.cast_signed());
                Bf16Dots(_mm512_dpbf16_ps(
                    self.0,
                    transmute::<__m512i, __m512bh>(x),
                    transmute::<__m512i, __m512bh>(by),
                ))
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use unit::Bf16Dots;
