//! Peak rates of the processor, against which each kernel's cost is compared (`kernels/README.md`).
//!
//! Each function runs one kind of instruction on all threads, from registers or from memory larger than every cache, and
//! returns the rate.

use std::hint::black_box;
use std::time::Instant;

#[cfg(target_arch = "x86_64")]
use crate::bf16_unit::{Amx, Bf16Unit};
use crate::cpu::Isa;
#[cfg(target_arch = "aarch64")]
use crate::matrix_unit::I8mm;
#[cfg(target_arch = "aarch64")]
use crate::matrix_unit::MatrixUnit;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for, threads};
use crate::simd::SimdF32x16;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Bf16Dots, PairSums};

/// Instructions on sums of 16 lanes; each lane set keeps as many sums busy as its registers hold, which hides their latency.
const INSTRUCTIONS: usize = 16_000_000;

/// Multiplications and additions of bytes per second.
pub fn byte_operations(isa: Isa) -> f64 {
    match isa {
        #[cfg(target_arch = "aarch64")]
        Isa::I8mm => tiles::<I8mm>(),
        // 64 products and 64 sums each.
        _ => rate(128 * INSTRUCTIONS, |out| dots(isa, out)),
    }
}

/// Multiplications and additions of bf16 per second on instructions for bf16; `None` without them.
pub fn bf16_operations(isa: Isa) -> Option<f64> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Bf16 => {
            // SAFETY: an `Isa` is only selected after `is_available` returned true.
            Some(rate(64 * INSTRUCTIONS, |out| unsafe { pairs(out) }))
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Amx => {
            let rounds = 128 * INSTRUCTIONS / Amx::BUSY_OPERATIONS;
            Some(rate(rounds * Amx::BUSY_OPERATIONS, |_| Amx::busy(rounds)))
        }
        _ => None,
    }
}

/// 32 products and 32 sums an instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pairs(out: &mut [f32; 16]) {
    const SUMS: usize = 16;
    let mut sums = [Bf16Dots::load(out); SUMS];
    let (operand, by) = (Bf16Dots::zipped(&black_box([0; 64])), black_box(0));
    for _ in 0..INSTRUCTIONS / SUMS {
        for sum in &mut sums {
            *sum = sum.add(operand, by);
        }
    }
    sums.into_iter().for_each(|sum| sum.store(black_box(out)));
}

#[cfg(target_arch = "aarch64")]
fn tiles<T: MatrixUnit>() -> f64 {
    let rounds = 128 * INSTRUCTIONS / T::BUSY_OPERATIONS;
    rate(rounds * T::BUSY_OPERATIONS, |_| T::busy(rounds))
}

/// Multiplications and additions of `f32` per second.
pub fn float_operations(isa: Isa) -> f64 {
    rate(32 * INSTRUCTIONS, |out| products(isa, out))
}

/// Bytes per second that all threads read from `memory`, which should be larger than every cache.
pub fn read_bytes(isa: Isa, memory: &[f32]) -> f64 {
    const PART: usize = 1 << 18;
    let parts: Vec<&[f32]> = memory.chunks(PART).collect();
    let mut sums = vec![[0f32; 16]; parts.len()];
    let all = Disjoint::new(&mut sums);
    let started = Instant::now();
    // SAFETY: every task owns one sum.
    parallel_for(parts.len(), &|task| add_up(isa, parts[task], unsafe { &mut all.part(task, 1)[0] }));
    let seconds = started.elapsed().as_secs_f64();
    black_box(&sums);
    size_of_val(memory) as f64 / seconds
}

/// The rate of work that every thread does once.
fn rate(operations: usize, work: impl Fn(&mut [f32; 16]) + Sync) -> f64 {
    let mut sums = vec![[0f32; 16]; threads()];
    let all = Disjoint::new(&mut sums);
    let started = Instant::now();
    // SAFETY: every task owns one sum.
    parallel_for(threads(), &|task| work(unsafe { &mut all.part(task, 1)[0] }));
    let seconds = started.elapsed().as_secs_f64();
    black_box(&sums);
    (operations * threads()) as f64 / seconds
}

per_isa! {
    fn dots(isa, out: &mut [f32; 16]) = dot_bytes::<L>;
}

#[inline(always)]
fn dot_bytes<L: SimdF32x16>(out: &mut [f32; 16]) {
    match L::ROWS {
        4 => dot_into::<L, 4>(out),
        _ => dot_into::<L, 8>(out),
    }
}

/// Dots with weights of four bits, whose sums may be widened seldom.
#[inline(always)]
fn dot_into<L: SimdF32x16, const R: usize>(out: &mut [f32; 16]) {
    let (w, a) = (L::bytes(black_box(&[3; 64])), black_box([[1i8, 2, 3, 4]; R]));
    let together = L::together(15).min(8);
    let mut sums = [L::ints(0); R];
    for _ in 0..INSTRUCTIONS / (R * together) {
        let mut partial = sums.map(L::begin);
        for _ in 0..together {
            for (partial, a) in partial.iter_mut().zip(&a) {
                *partial = L::partial_here(L::dot(*partial, w, a));
            }
        }
        sums.iter_mut().zip(partial).for_each(|(sum, partial)| *sum = L::end(*sum, partial));
    }
    sums.into_iter().map(L::from_ints).fold(L::splat(0.0), L::add).store(out);
}

per_isa! {
    fn products(isa, out: &mut [f32; 16]) = multiply_add::<L>;
}

#[inline(always)]
fn multiply_add<L: SimdF32x16>(out: &mut [f32; 16]) {
    match L::ROWS {
        4 => multiply_into::<L, 4>(out),
        _ => multiply_into::<L, 8>(out),
    }
}

#[inline(always)]
fn multiply_into<L: SimdF32x16, const R: usize>(out: &mut [f32; 16]) {
    let (x, y) = (L::load(black_box(&[1.000_1; 16])), L::load(black_box(&[0.999_9; 16])));
    let mut sums = [L::splat(0.0); R];
    for _ in 0..INSTRUCTIONS / R {
        for sum in &mut sums {
            *sum = x.mul_add(y, *sum);
        }
    }
    sums.into_iter().fold(L::splat(0.0), L::add).store(out);
}

per_isa! {
    fn add_up(isa, memory: &[f32], out: &mut [f32; 16]) = add_values::<L>;
}

#[inline(always)]
fn add_values<L: SimdF32x16>(memory: &[f32], out: &mut [f32; 16]) {
    let mut sums = [L::splat(0.0); 4];
    for values in memory.as_chunks::<16>().0.as_chunks::<4>().0 {
        for (sum, values) in sums.iter_mut().zip(values) {
            *sum = sum.add(L::load(values));
        }
    }
    sums.into_iter().fold(L::splat(0.0), L::add).store(out);
}
