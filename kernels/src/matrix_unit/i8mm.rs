//! Arm's instruction (Armv8.6) for two rows by two columns of eight bytes each.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "only code that is compiled for this instruction set, and that runs only where the processor has it, uses this type; loads and stores are of whole arrays"
)]
// Which of these intrinsics are unsafe differs between compiler versions.
#![allow(unused_unsafe)]

use std::arch::aarch64::*;
use std::arch::asm;

use super::{AT_ONCE, Left, MatrixUnit, ROWS, Right, Sums};

/// Eights of bytes in a row.
const EIGHTS: usize = 4;

pub(crate) struct I8mm;

/// `sum + a·b`: two rows and two columns of eight signed bytes, one after the other; sums row by row.
#[inline(always)]
unsafe fn multiply_pairs(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: registers only. The intrinsic for this instruction is not in stable Rust, nor known to every assembler target.
    unsafe {
        asm!(
            ".arch_extension i8mm",
            "smmla {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sum, in(vreg) a, in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

/// Bytes `8e ..` of rows `m` and `m + 1`.
#[inline(always)]
unsafe fn rows(a: &Left, m: usize, e: usize) -> int8x16_t {
    unsafe { vcombine_s8(vld1_s8(a[m].as_ptr().add(8 * e)), vld1_s8(a[m + 1].as_ptr().add(8 * e))) }
}

/// Bytes `8e ..` of columns `n` and `n + 1`, and of the two after them.
#[inline(always)]
unsafe fn columns(b: &Right, n: usize, e: usize) -> [int8x16_t; 2] {
    unsafe {
        let fours = |g: usize| vreinterpretq_s32_s8(vld1q_s8(b[g].as_ptr().add(4 * n)));
        let (low, high) = (fours(2 * e), fours(2 * e + 1));
        [vreinterpretq_s8_s32(vzip1q_s32(low, high)), vreinterpretq_s8_s32(vzip2q_s32(low, high))]
    }
}

impl MatrixUnit for I8mm {
    /// Four sums of eight products, sixteen times.
    const BUSY_OPERATIONS: usize = 16 * 2 * 4 * 8;

    #[inline(always)]
    fn new() -> Self {
        I8mm
    }

    #[inline(always)]
    fn multiply(&self, a: [&Left; AT_ONCE], b: [&Right; AT_ONCE], sums: &mut [Sums; AT_ONCE]) {
        for ((a, b), sums) in a.into_iter().zip(b).zip(sums) {
            // Eight columns at a time stay in registers.
            for n in [0, 8] {
                let b: [[[int8x16_t; 2]; EIGHTS]; 2] =
                    std::array::from_fn(|four| std::array::from_fn(|e| unsafe { columns(b, n + 4 * four, e) }));
                for m in (0..ROWS).step_by(2) {
                    let a: [int8x16_t; EIGHTS] = std::array::from_fn(|e| unsafe { rows(a, m, e) });
                    for (four, b) in b.iter().enumerate() {
                        let mut pairs = [unsafe { vdupq_n_s32(0) }; 2];
                        for (a, b) in a.iter().zip(b) {
                            pairs = [0, 1].map(|i| unsafe { multiply_pairs(pairs[i], *a, b[i]) });
                        }
                        let [left, right] = pairs.map(|pair| unsafe { vreinterpretq_s64_s32(pair) });
                        let at = n + 4 * four;
                        unsafe {
                            vst1q_s32(sums.0[m][at..].as_mut_ptr(), vreinterpretq_s32_s64(vzip1q_s64(left, right)));
                            vst1q_s32(sums.0[m + 1][at..].as_mut_ptr(), vreinterpretq_s32_s64(vzip2q_s64(left, right)));
                        }
                    }
                }
            }
        }
    }

    fn busy(rounds: usize) {
        let ones = unsafe { vdupq_n_s8(1) };
        let mut sums = [unsafe { vdupq_n_s32(0) }; 16];
        for _ in 0..rounds {
            sums = sums.map(|sum| unsafe { multiply_pairs(sum, ones, ones) });
        }
        std::hint::black_box(sums);
    }
}
