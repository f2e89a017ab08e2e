//! The pointwise functions between two products of a block.
//!
//! # Contract
//! SwiGLU: `out = silu(gate) · up` for `gate_up: [N, 2F]` with the gate first, `out: [N, F]`.
//! GeGLU: `out = gelu_tanh(gate) · up`, likewise (Gemma).
//! GELU: `out = x Φ(x)`, the exact form (BERT, XLM-R).
//! Sum: `out = x + y`, `y` of the same size or one row.
//!
//! # Numerics
//! `exp` and `erfc` of [`crate::math`]; all ISAs give the same bits.
//!
//! # Cost
//! About 25 operations a value, one for a sum; bound by them, or by memory.

use std::mem::MaybeUninit;

use crate::cpu::Isa;
use crate::math;
use crate::output::in_parts;
use crate::per_isa::per_isa;

/// Values per task.
const VALUES_PER_TASK: usize = 8192;

/// `silu(gate) · up` of every row of `gate_up: [N, 2·width]`.
pub fn swiglu(isa: Isa, gate_up: &[f32], width: usize) -> Vec<f32> {
    gated(gate_up, width, |gate, up, out| swiglu_row(isa, gate, up, out))
}

/// `gelu_tanh(gate) · up` of every row of `gate_up: [N, 2·width]`.
pub fn geglu(isa: Isa, gate_up: &[f32], width: usize) -> Vec<f32> {
    gated(gate_up, width, |gate, up, out| geglu_row(isa, gate, up, out))
}

/// `row_of` writes the output of a row from its gate and up.
fn gated(gate_up: &[f32], width: usize, row_of: impl Fn(&[f32], &[f32], &mut [MaybeUninit<f32>]) + Sync) -> Vec<f32> {
    assert!(gate_up.len().is_multiple_of(2 * width), "{} values in rows of {}", gate_up.len(), 2 * width);
    let part = (VALUES_PER_TASK / width).max(1) * width;
    // SAFETY: every row of a part is written, and every value of a row.
    unsafe {
        in_parts(gate_up.len() / 2, part, |range, out| {
            let rows = gate_up[2 * range.start..2 * range.end].chunks_exact(2 * width);
            for (row, out) in rows.zip(out.chunks_exact_mut(width)) {
                let (gate, up) = row.split_at(width);
                row_of(gate, up, out);
            }
        })
    }
}

per_isa! {
    fn swiglu_row(isa, gate: &[f32], up: &[f32], out: &mut [MaybeUninit<f32>]) = swiglu_values;
}

#[inline(always)]
fn swiglu_values(gate: &[f32], up: &[f32], out: &mut [MaybeUninit<f32>]) {
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        out.write(math::silu(*gate) * up);
    }
}

per_isa! {
    fn geglu_row(isa, gate: &[f32], up: &[f32], out: &mut [MaybeUninit<f32>]) = geglu_values;
}

#[inline(always)]
fn geglu_values(gate: &[f32], up: &[f32], out: &mut [MaybeUninit<f32>]) {
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        out.write(math::gelu_tanh(*gate) * up);
    }
}

/// GELU of every value.
pub fn gelu(isa: Isa, x: &[f32]) -> Vec<f32> {
    // SAFETY: every value is written.
    unsafe { in_parts(x.len(), VALUES_PER_TASK, |range, out| gelu_part(isa, &x[range], out)) }
}

per_isa! {
    fn gelu_part(isa, x: &[f32], out: &mut [MaybeUninit<f32>]) = gelu_values;
}

#[inline(always)]
fn gelu_values(x: &[f32], out: &mut [MaybeUninit<f32>]) {
    for (out, x) in out.iter_mut().zip(x) {
        out.write(math::gelu(*x));
    }
}

/// `x + y` for `y` as long as `x`, or for one row that is added to every row of `x`.
pub fn sum(isa: Isa, x: &[f32], y: &[f32]) -> Vec<f32> {
    assert!(x.len().is_multiple_of(y.len()), "{} values and rows of {}", x.len(), y.len());
    let whole = x.len() == y.len();
    let part = if whole { VALUES_PER_TASK } else { (VALUES_PER_TASK / y.len()).max(1) * y.len() };
    // SAFETY: every value is written.
    unsafe {
        in_parts(x.len(), part, |range, out| {
            let y = if whole { &y[range.clone()] } else { y };
            let rows = x[range].chunks(y.len());
            rows.zip(out.chunks_mut(y.len())).for_each(|(x, out)| sum_part(isa, x, y, out));
        })
    }
}

per_isa! {
    fn sum_part(isa, x: &[f32], y: &[f32], out: &mut [MaybeUninit<f32>]) = sums;
}

#[inline(always)]
fn sums(x: &[f32], y: &[f32], out: &mut [MaybeUninit<f32>]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        out.write(x + y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_gives_the_bits_of_plain_loops() {
        let values = |seed: usize, len: usize| -> Vec<f32> {
            (0..len).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 100.0 - 10.0).collect()
        };
        // One row, several tasks, and a length that is not a multiple of the SIMD width.
        for (rows, width) in [(1, 5), (3, 576), (40, 1003)] {
            let (x, y) = (values(1, rows * width), values(2, rows * width));
            let both = [x.clone(), y.clone()].concat();
            let gated = |by: fn(f32) -> f32| -> Vec<f32> {
                let of_row = |row: &[f32]| -> Vec<f32> {
                    row[..width].iter().zip(&row[width..]).map(|(gate, up)| by(*gate) * up).collect()
                };
                both.chunks(2 * width).flat_map(of_row).collect()
            };
            let (by_silu, by_gelu) = (gated(math::silu), gated(math::gelu_tanh));
            let added: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
            let shifted: Vec<f32> = x.iter().zip(y[..width].iter().cycle()).map(|(x, y)| x + y).collect();
            let bent: Vec<f32> = x.iter().map(|x| math::gelu(*x)).collect();
            for isa in Isa::available() {
                assert_eq!(swiglu(isa, &both, width), by_silu, "{isa} swiglu {rows} x {width}");
                assert_eq!(geglu(isa, &both, width), by_gelu, "{isa} geglu {rows} x {width}");
                assert_eq!(sum(isa, &x, &y), added, "{isa} sum {rows} x {width}");
                assert_eq!(sum(isa, &x, &y[..width]), shifted, "{isa} sum of a row {rows} x {width}");
                assert_eq!(gelu(isa, &x), bent, "{isa} gelu {rows} x {width}");
            }
        }
    }
}
