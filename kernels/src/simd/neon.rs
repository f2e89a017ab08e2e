//! Sixteen numbers in four 128-bit registers, with the dot product of Armv8.2 (every 64-bit Arm core since about 2018).

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "only code that `per_isa!` has compiled for this instruction set, and that runs only where the processor has it, uses this type; loads and stores are of whole arrays"
)]
// Which of these intrinsics are unsafe differs between compiler versions.
#![allow(unused_unsafe)]

use std::arch::aarch64::*;
use std::arch::asm;

use half::f16;

use super::SimdF32x16;
use crate::cpu::Isa;

/// Four 128-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Neon([float32x4_t; 4]);

impl Neon {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(float32x4_t, float32x4_t) -> float32x4_t) -> Self {
        let part = |i: usize| f(self.0[i], other.0[i]);
        Neon([part(0), part(1), part(2), part(3)])
    }
}

#[inline(always)]
fn four<T>(part: impl Fn(usize) -> T) -> [T; 4] {
    [part(0), part(1), part(2), part(3)]
}

/// Four f16 as `f32`.
#[inline(always)]
unsafe fn widen(halves: uint16x4_t) -> float32x4_t {
    let wide: float32x4_t;
    // SAFETY: registers only. The intrinsic for this instruction is not in stable Rust.
    unsafe { asm!("fcvtl {0:v}.4s, {1:v}.4h", out(vreg) wide, in(vreg) halves, options(pure, nomem, nostack)) };
    wide
}

/// `sum + Σ w_i a_i` over four signed bytes of every lane.
#[inline(always)]
unsafe fn dot_signed(sum: int32x4_t, w: int8x16_t, a: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: registers only. The intrinsic for this instruction is not in stable Rust.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sum, in(vreg) w, in(vreg) a,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

/// The four bytes in every lane.
#[inline(always)]
unsafe fn broadcast(a: &[i8; 4]) -> int8x16_t {
    unsafe { vreinterpretq_s8_s32(vdupq_n_s32(a.as_ptr().cast::<i32>().read_unaligned())) }
}

impl SimdF32x16 for Neon {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Neon([unsafe { vdupq_n_f32(x) }; 4])
    }

    #[inline(always)]
    fn load(x: &[f32; 16]) -> Self {
        Neon(four(|i| unsafe { vld1q_f32(x.as_ptr().add(4 * i)) }))
    }

    #[inline(always)]
    fn load_halves(x: &[f16; 16]) -> Self {
        Neon(four(|i| unsafe { widen(vld1_u16(x.as_ptr().cast::<u16>().add(4 * i))) }))
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; 16]) {
        for (i, part) in self.0.into_iter().enumerate() {
            unsafe { vst1q_f32(out.as_mut_ptr().add(4 * i), part) }
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { vaddq_f32(a, b) })
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { vsubq_f32(a, b) })
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { vmulq_f32(a, b) })
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { vdivq_f32(a, b) })
    }

    // The instructions for maximum and minimum pass NaN on from either side, so these choose by comparing.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { vbslq_f32(vcltq_f32(a, b), a, b) })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Neon(four(|i| unsafe { vfmaq_f32(term.0[i], self.0[i], factor.0[i]) }))
    }

    #[inline(always)]
    fn round(self) -> Self {
        Neon(self.0.map(|x| unsafe { vrndnq_f32(x) }))
    }

    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        // Two factors, since 2^128 alone is no f32.
        self.zip(n, |x, n| unsafe {
            let n = vcvtq_s32_f32(n);
            let half = vshrq_n_s32::<1>(n);
            let power = |n| vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127))));
            vmulq_f32(vmulq_f32(x, power(half)), power(vsubq_s32(n, half)))
        })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Neon(self.0.map(|x| unsafe { vabsq_f32(x) }))
    }

    #[inline(always)]
    fn store_i8s(self, out: &mut [i8; 16]) -> i32 {
        unsafe {
            let ints = self.0.map(|x| vcvtnq_s32_f32(x));
            let words = |i: usize| vcombine_s16(vqmovn_s32(ints[i]), vqmovn_s32(ints[i + 1]));
            vst1q_s8(out.as_mut_ptr(), vcombine_s8(vqmovn_s16(words(0)), vqmovn_s16(words(2))));
            vaddvq_s32(vaddq_s32(vaddq_s32(ints[0], ints[1]), vaddq_s32(ints[2], ints[3])))
        }
    }

    #[inline(always)]
    fn zero_below(self, x: Self, bound: f32) -> Self {
        self.zip(x, |value, x| unsafe {
            let below = vcltq_f32(x, vdupq_n_f32(bound));
            vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), below))
        })
    }

    type Bytes = [uint8x16_t; 4];
    type Ints = [int32x4_t; 4];
    const ISA: Isa = Isa::Neon;
    const ZERO_OF_BYTES: i32 = 0;

    #[inline(always)]
    fn from_f32s(x: &[u8; 64]) -> Self {
        Neon(four(|i| unsafe { vreinterpretq_f32_u8(vld1q_u8(x.as_ptr().add(16 * i))) }))
    }

    #[inline(always)]
    fn from_halves(x: &[u8; 32]) -> Self {
        Neon(four(|i| unsafe { widen(vreinterpret_u16_u8(vld1_u8(x.as_ptr().add(8 * i)))) }))
    }

    #[inline(always)]
    fn from_bf16s(x: &[u8; 32]) -> Self {
        Neon(four(|i| unsafe {
            let halves = vreinterpret_u16_u8(vld1_u8(x.as_ptr().add(8 * i)));
            vreinterpretq_f32_u32(vshlq_n_u32::<16>(vmovl_u16(halves)))
        }))
    }

    #[inline(always)]
    fn from_u8s(x: &[u8; 16]) -> Self {
        unsafe {
            let x = vld1q_u8(x.as_ptr());
            let words = [vmovl_u8(vget_low_u8(x)), vmovl_u8(vget_high_u8(x))];
            let low = |i: usize| vcvtq_f32_u32(vmovl_u16(vget_low_u16(words[i])));
            let high = |i: usize| vcvtq_f32_u32(vmovl_u16(vget_high_u16(words[i])));
            Neon([low(0), high(0), low(1), high(1)])
        }
    }

    #[inline(always)]
    fn from_i8s(x: &[u8; 16]) -> Self {
        unsafe {
            let x = vreinterpretq_s8_u8(vld1q_u8(x.as_ptr()));
            let words = [vmovl_s8(vget_low_s8(x)), vmovl_s8(vget_high_s8(x))];
            let low = |i: usize| vcvtq_f32_s32(vmovl_s16(vget_low_s16(words[i])));
            let high = |i: usize| vcvtq_f32_s32(vmovl_s16(vget_high_s16(words[i])));
            Neon([low(0), high(0), low(1), high(1)])
        }
    }

    #[inline(always)]
    fn from_i32s(x: &[i32; 16]) -> Self {
        Self::from_ints(four(|i| unsafe { vld1q_s32(x.as_ptr().add(4 * i)) }))
    }

    #[inline(always)]
    fn from_ints(x: [int32x4_t; 4]) -> Self {
        Neon(x.map(|x| unsafe { vcvtq_f32_s32(x) }))
    }

    #[inline(always)]
    fn bytes(x: &[u8; 64]) -> [uint8x16_t; 4] {
        four(|i| unsafe { vld1q_u8(x.as_ptr().add(16 * i)) })
    }

    #[inline(always)]
    fn to_bytes(x: [uint8x16_t; 4]) -> [u8; 64] {
        let mut out = [0; 64];
        for (i, part) in x.into_iter().enumerate() {
            unsafe { vst1q_u8(out.as_mut_ptr().add(16 * i), part) }
        }
        out
    }

    #[inline(always)]
    fn and(x: [uint8x16_t; 4], mask: u8) -> [uint8x16_t; 4] {
        x.map(|x| unsafe { vandq_u8(x, vdupq_n_u8(mask)) })
    }

    #[inline(always)]
    fn or(x: [uint8x16_t; 4], y: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
        four(|i| unsafe { vorrq_u8(x[i], y[i]) })
    }

    #[inline(always)]
    fn shift_left(x: [uint8x16_t; 4], by: i32) -> [uint8x16_t; 4] {
        x.map(|x| unsafe { vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(x), vdupq_n_s16(by as i16))) })
    }

    #[inline(always)]
    fn shift_right(x: [uint8x16_t; 4], by: i32) -> [uint8x16_t; 4] {
        Self::shift_left(x, -by)
    }

    #[inline(always)]
    fn looked_up(x: [uint8x16_t; 4], table: &[u8; 16]) -> [uint8x16_t; 4] {
        unsafe {
            let table = vld1q_u8(table.as_ptr());
            four(|i| vqtbl1q_u8(table, x[i]))
        }
    }

    #[inline(always)]
    fn ints(x: i32) -> [int32x4_t; 4] {
        [unsafe { vdupq_n_s32(x) }; 4]
    }

    #[inline(always)]
    fn dot(sum: [int32x4_t; 4], w: [uint8x16_t; 4], a: &[i8; 4]) -> [int32x4_t; 4] {
        unsafe {
            let a = broadcast(a);
            four(|i| dot_signed(sum[i], vreinterpretq_s8_u8(w[i]), a))
        }
    }

    #[inline(always)]
    fn dot_bytes(sum: [int32x4_t; 4], w: [uint8x16_t; 4], a: &[i8; 4]) -> [int32x4_t; 4] {
        unsafe {
            let a = broadcast(a);
            four(|i| dot_signed(sum[i], vreinterpretq_s8_u8(veorq_u8(w[i], vdupq_n_u8(128))), a))
        }
    }
}
