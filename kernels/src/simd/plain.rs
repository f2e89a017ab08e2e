//! Sixteen `f32` in plain Rust.

use half::{bf16, f16};

use super::SimdF32x16;
use crate::cpu::Isa;

#[derive(Clone, Copy)]
pub(crate) struct Plain([f32; 16]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Plain(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

impl SimdF32x16 for Plain {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Plain([x; 16])
    }

    #[inline(always)]
    fn load(x: &[f32; 16]) -> Self {
        Plain(*x)
    }

    #[inline(always)]
    fn load_halves(x: &[f16; 16]) -> Self {
        Plain(x.map(f16::to_f32))
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; 16]) {
        *out = self.0;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i].mul_add(factor.0[i], term.0[i])))
    }

    #[inline(always)]
    fn round(self) -> Self {
        Plain(self.0.map(f32::round_ties_even))
    }

    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        self.zip(n, crate::math::scale)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Plain(self.0.map(f32::abs))
    }

    #[inline(always)]
    fn store_i8s(self, out: &mut [i8; 16]) -> i32 {
        *out = self.0.map(|x| x as i8);
        out.iter().map(|x| i32::from(*x)).sum()
    }

    #[inline(always)]
    fn zero_below(self, x: Self, bound: f32) -> Self {
        self.zip(x, |value, x| if x < bound { 0.0 } else { value })
    }

    type Bytes = [u8; 64];
    type Ints = [i32; 16];
    const ISA: Isa = Isa::Scalar;
    const ZERO_OF_BYTES: i32 = 128;

    #[inline(always)]
    fn from_f32s(x: &[u8; 64]) -> Self {
        Plain(std::array::from_fn(|i| f32::from_le_bytes([x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]])))
    }

    #[inline(always)]
    fn from_halves(x: &[u8; 32]) -> Self {
        Plain(std::array::from_fn(|i| f16::from_le_bytes([x[2 * i], x[2 * i + 1]]).to_f32()))
    }

    #[inline(always)]
    fn from_bf16s(x: &[u8; 32]) -> Self {
        Plain(std::array::from_fn(|i| bf16::from_le_bytes([x[2 * i], x[2 * i + 1]]).to_f32()))
    }

    #[inline(always)]
    fn from_u8s(x: &[u8; 16]) -> Self {
        Plain(x.map(f32::from))
    }

    #[inline(always)]
    fn from_i8s(x: &[u8; 16]) -> Self {
        Plain(x.map(|x| f32::from(x.cast_signed())))
    }

    #[inline(always)]
    fn from_i32s(x: &[i32; 16]) -> Self {
        Self::from_ints(*x)
    }

    #[inline(always)]
    fn from_ints(x: [i32; 16]) -> Self {
        Plain(x.map(|x| x as f32))
    }

    #[inline(always)]
    fn bytes(x: &[u8; 64]) -> [u8; 64] {
        *x
    }

    #[inline(always)]
    fn to_bytes(x: [u8; 64]) -> [u8; 64] {
        x
    }

    #[inline(always)]
    fn and(x: [u8; 64], mask: u8) -> [u8; 64] {
        x.map(|x| x & mask)
    }

    #[inline(always)]
    fn or(x: [u8; 64], y: [u8; 64]) -> [u8; 64] {
        std::array::from_fn(|i| x[i] | y[i])
    }

    #[inline(always)]
    fn shift_left(x: [u8; 64], by: i32) -> [u8; 64] {
        x.map(|x| x << by)
    }

    #[inline(always)]
    fn shift_right(x: [u8; 64], by: i32) -> [u8; 64] {
        x.map(|x| x >> by)
    }

    #[inline(always)]
    fn looked_up(x: [u8; 64], table: &[u8; 16]) -> [u8; 64] {
        x.map(|x| table[usize::from(x & 15)])
    }

    #[inline(always)]
    fn ints(x: i32) -> [i32; 16] {
        [x; 16]
    }

    #[inline(always)]
    fn dot(sum: [i32; 16], w: [u8; 64], a: &[i8; 4]) -> [i32; 16] {
        let product = |lane: usize, i: usize| i32::from(w[4 * lane + i]) * i32::from(a[i]);
        std::array::from_fn(|lane| sum[lane] + (0..4).map(|i| product(lane, i)).sum::<i32>())
    }

    #[inline(always)]
    fn dot_bytes(sum: [i32; 16], w: [u8; 64], a: &[i8; 4]) -> [i32; 16] {
        Self::dot(sum, w, a)
    }
}
