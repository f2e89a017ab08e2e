//! A portable SIMD vector of sixteen `f32`, implemented for each instruction set.
//!
//! Inner loops are generic over [`SimdF32x16`] and compiled for every ISA by [`per_isa!`](crate::per_isa). All operations are
//! element-wise and correctly rounded, so every implementation gives the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod pairs;
mod plain;

use half::f16;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
#[cfg(target_arch = "x86_64")]
pub(crate) use pairs::Bf16Dots;
pub(crate) use pairs::{InBf16, PairSums, Widened};
pub(crate) use plain::Plain;

use crate::cpu::Isa;

/// Sixteen `f32`, and byte dot products that accumulate into sixteen `i32`.
pub(crate) trait SimdF32x16: Copy {
    /// Sixty-four bytes: four for each lane.
    type Bytes: Copy;
    /// Sixteen `i32`.
    type Ints: Copy;
    /// The ISA that this type belongs to.
    const ISA: Isa;
    /// Zero point of [`SimdF32x16::dot_bytes`]: 128 or 0.
    const ZERO_OF_BYTES: i32;
    /// Pairs of sums, 2 or 8, that fit into the registers beside their operands.
    const PAIRS: usize = 2;
    /// Rows, 4 or 8, whose byte-product sums fit into the registers.
    const ROWS: usize = 4;
    /// Rows, 6 or 8, whose `f32` sums fit into the registers.
    const DENSE_ROWS: usize = 6;

    fn splat(x: f32) -> Self;
    fn load(x: &[f32; 16]) -> Self;
    fn load_halves(x: &[f16; 16]) -> Self;
    /// Sixteen `f32`, f16 or bf16 as a little-endian file holds them.
    fn from_f32s(x: &[u8; 64]) -> Self;
    fn from_halves(x: &[u8; 32]) -> Self;
    fn from_bf16s(x: &[u8; 32]) -> Self;
    /// Sixteen small whole numbers.
    fn from_u8s(x: &[u8; 16]) -> Self;
    fn from_i8s(x: &[u8; 16]) -> Self;
    fn from_i32s(x: &[i32; 16]) -> Self;
    fn from_ints(x: Self::Ints) -> Self;
    fn store(self, out: &mut [f32; 16]);
    /// Rounds to the nearest, halves to even.
    #[inline(always)]
    fn store_halves(self, out: &mut [f16; 16]) {
        let mut floats = [0f32; 16];
        self.store(&mut floats);
        *out = floats.map(f16::from_f32);
    }
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// The larger; `other` if either is NaN.
    fn max(self, other: Self) -> Self;
    /// The smaller; `other` if either is NaN.
    fn min(self, other: Self) -> Self;
    /// `self · factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// To the nearest whole number, halves to even.
    fn round(self) -> Self;
    /// `self · 2^n` for whole `n` within -126 ..= 128, rounded once.
    fn scale(self, n: Self) -> Self;
    fn abs(self) -> Self;
    /// Stores whole numbers within -128 ..= 127 as bytes and returns their sum.
    fn store_i8s(self, out: &mut [i8; 16]) -> i32;
    /// 0 wherever `x` is below `bound`.
    fn zero_below(self, x: Self, bound: f32) -> Self;

    fn bytes(x: &[u8; 64]) -> Self::Bytes;
    fn to_bytes(x: Self::Bytes) -> [u8; 64];
    /// Bit-wise, byte by byte.
    fn and(x: Self::Bytes, mask: u8) -> Self::Bytes;
    fn or(x: Self::Bytes, y: Self::Bytes) -> Self::Bytes;
    /// Shifts pairs of bytes; the caller masks off what comes in from the neighbour.
    fn shift_left(x: Self::Bytes, by: i32) -> Self::Bytes;
    fn shift_right(x: Self::Bytes, by: i32) -> Self::Bytes;
    /// The entries of a table by bytes below 16.
    fn looked_up(x: Self::Bytes, table: &[u8; 16]) -> Self::Bytes;
    fn ints(x: i32) -> Self::Ints;
    /// How many dots may be added up between [`SimdF32x16::begin`] and [`SimdF32x16::end`], a power of two or any number, of weights that
    /// are at most `largest`.
    #[inline(always)]
    fn together(largest: i32) -> usize {
        let _ = largest;
        usize::MAX
    }

    /// Begins to add dots to `sum`: in the same registers, but perhaps in narrower numbers.
    #[inline(always)]
    fn begin(sum: Self::Ints) -> Self::Ints {
        sum
    }

    /// The sum of what [`SimdF32x16::begin`] was given and the dots that were added since.
    #[inline(always)]
    fn end(sum: Self::Ints, partial: Self::Ints) -> Self::Ints {
        let _ = sum;
        partial
    }

    /// `partial + Σ w_i a_i` over the four bytes of every lane; `w` at most 63, `a` four bytes from -127 to 127 that all lanes
    /// share.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the instruction broadcasts it from memory")]
    fn dot(partial: Self::Ints, w: Self::Bytes, a: &[i8; 4]) -> Self::Ints;
    /// The same for any `w`: `partial + Σ (w_i - 128 + ZERO_OF_BYTES) a_i`.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the instruction broadcasts it from memory")]
    fn dot_bytes(partial: Self::Ints, w: Self::Bytes, a: &[i8; 4]) -> Self::Ints;

    /// Sixteen pairs of little-endian numbers out of sixteen first ones and sixteen second ones.
    #[inline(always)]
    fn interleave(x: &[u8; 64], out: &mut [u16; 32]) {
        for (i, out) in out.iter_mut().enumerate() {
            let at = 2 * (16 * (i % 2) + i / 2);
            *out = u16::from_le_bytes([x[at], x[at + 1]]);
        }
    }

    /// An optimisation barrier: the value is computed here and not earlier, else compilers unpack many weights ahead and spill
    /// them.
    #[inline(always)]
    fn bytes_here(x: Self::Bytes) -> Self::Bytes {
        x
    }

    /// The same for sums.
    #[inline(always)]
    fn partial_here(x: Self::Ints) -> Self::Ints {
        x
    }

    /// Adds the upper half onto the lower until one is left.
    #[inline(always)]
    fn sum(self) -> f32 {
        fold(self, |a, b| a + b)
    }

    /// The largest.
    #[inline(always)]
    fn largest(self) -> f32 {
        fold(self, f32::max)
    }
}

#[inline(always)]
fn fold<L: SimdF32x16>(lanes: L, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut x = [0f32; 16];
    lanes.store(&mut x);
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            x[i] = join(x[i], x[i + width]);
        }
    }
    x[0]
}

/// Prefetches the cache line of `x`.
#[inline(always)]
pub(crate) fn prefetch<T>(x: *const T) {
    let address = x.cast::<i8>();
    // SAFETY: a hint; nothing is read.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags));
    }
}

/// Prefetches the cache line of `x` to be written.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(x: *const T) {
    // SAFETY: a hint; nothing is read or written. Every x86-64 processor takes it, some as no operation.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) x, options(readonly, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) x, options(readonly, nostack, preserves_flags));
    }
}

/// [`crate::math::exp`] of every lane, with its bits.
#[inline(always)]
pub(crate) fn exp<L: SimdF32x16>(x: L) -> L {
    use crate::math::exp_constants as c;
    // In this order a NaN stays one.
    let clamped = L::splat(c::HIGHEST).min(L::splat(c::LOWEST).max(x));
    let n = clamped.mul(L::splat(std::f32::consts::LOG2_E)).round();
    let r = n.mul_add(L::splat(-c::LN2_LOW), n.mul_add(L::splat(-c::LN2_HIGH), clamped));
    let mut p = L::splat(c::POLYNOMIAL[0]);
    for term in &c::POLYNOMIAL[1..] {
        p = p.mul_add(r, L::splat(*term));
    }
    let e = p.mul_add(r.mul(r), r).add(L::splat(1.0));
    e.scale(n).zero_below(x, c::LOWEST)
}

/// [`crate::math::exp2`] of every lane, with its bits.
#[inline(always)]
pub(crate) fn exp2<L: SimdF32x16>(x: L) -> L {
    use crate::math::exp2_constants as c;
    let n = x.round();
    let r = x.sub(n);
    let mut p = L::splat(c::POLYNOMIAL[0]);
    for term in &c::POLYNOMIAL[1..] {
        p = p.mul_add(r, L::splat(*term));
    }
    p.mul_add(r, L::splat(1.0)).scale(n).zero_below(x, c::LOWEST)
}

/// [`crate::math::silu`] of every lane, with its bits.
#[inline(always)]
pub(crate) fn silu<L: SimdF32x16>(x: L) -> L {
    x.div(L::splat(1.0).add(exp(x.mul(L::splat(-1.0)))))
}

/// [`crate::math::gelu`] of every lane, with its bits.
#[inline(always)]
pub(crate) fn gelu<L: SimdF32x16>(x: L) -> L {
    use std::f32::consts::FRAC_1_SQRT_2;
    L::splat(0.5).mul(x).mul(erfc(x.mul(L::splat(-1.0)).mul(L::splat(FRAC_1_SQRT_2))))
}

#[inline(always)]
fn erfc<L: SimdF32x16>(x: L) -> L {
    let z = x.abs();
    let t = L::splat(1.0).div(L::splat(0.5).mul_add(z, L::splat(1.0)));
    let mut p = L::splat(crate::math::ERFC[0]);
    for term in &crate::math::ERFC[1..] {
        p = p.mul_add(t, L::splat(*term));
    }
    let tail = t.mul(exp(z.mul_add(z.mul(L::splat(-1.0)), p)));
    // Of one or the other nothing is left, but where both are NaN.
    let rest = L::splat(2.0).sub(tail);
    tail.zero_below(x, 0.0).add(rest.sub(rest.zero_below(x, 0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::per_isa::per_isa;

    per_isa! {
        fn all_of(isa, x: &[f32; 16], out: &mut [[f32; 16]; 4]) = all_of_lanes::<L>;
    }

    #[inline(always)]
    fn all_of_lanes<L: SimdF32x16>(x: &[f32; 16], out: &mut [[f32; 16]; 4]) {
        exp(L::load(x)).store(&mut out[0]);
        silu(L::load(x)).store(&mut out[1]);
        gelu(L::load(x)).store(&mut out[2]);
        exp2(L::load(x).abs().mul(L::splat(-1.0))).store(&mut out[3]);
    }

    #[test]
    fn functions_have_the_same_bits_in_every_body() {
        use crate::math;
        let names = ["exp", "silu", "gelu", "exp2 of what is below 0"];
        let of = |x| [math::exp(x), math::silu(x), math::gelu(x), math::exp2(-x.abs())];
        let ordinary = (-7000i32..=7000).map(|i| std::array::from_fn(|lane| (i * 16 + lane as i32) as f32 * 0.000_9));
        let mut special = [0.0, -0.0, 1e-40, -1e-40, f32::MIN_POSITIVE, 1e30, -1e30, f32::INFINITY].repeat(2);
        special[15] = f32::NEG_INFINITY;
        let special: [f32; 16] = special.try_into().unwrap();
        for isa in Isa::available() {
            let mut out = [[0f32; 16]; 4];
            all_of(isa, &[f32::NAN; 16], &mut out);
            assert!(out.as_flattened().iter().all(|x| x.is_nan()), "{isa} loses NaN");
            for x in ordinary.clone().chain([special]) {
                all_of(isa, &x, &mut out);
                for (lane, x) in x.into_iter().enumerate() {
                    for ((name, want), out) in names.iter().zip(of(x)).zip(out) {
                        let got = out[lane];
                        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
                        assert!(same, "{isa} {name}({x}) is {got}, not {want}");
                    }
                }
            }
        }
    }
}
