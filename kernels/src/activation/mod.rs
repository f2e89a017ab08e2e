//! The pointwise functions between two products of a feed-forward block.
//!
//! # Contract
//! SwiGLU: `out = silu(gate) · up` for `gate_up: [N, 2F]` with the gate first, `out: [N, F]`.
//! GELU: `out = x Φ(x)`, the exact form (BERT, XLM-R).
//!
//! # Numerics
//! `exp` and `erfc` of [`crate::math`]; all bodies give the same bits.
//!
//! # Cost
//! About 25 operations a value; bound by them.

use crate::cpu::{Body, per_body};
use crate::math;
use crate::pool::{Disjoint, parallel_for};

const ROWS_PER_TASK: usize = 8;

/// `silu(gate) · up` of every row.
pub fn swiglu(body: Body, gate_up: &[f32], width: usize, out: &mut [f32]) {
    assert_eq!(gate_up.len(), 2 * out.len());
    let rows = out.len() / width;
    let out = Disjoint::new(out);
    parallel_for(rows.div_ceil(ROWS_PER_TASK), &|task| {
        for row in task * ROWS_PER_TASK..rows.min((task + 1) * ROWS_PER_TASK) {
            let (gate, up) = gate_up[row * 2 * width..][..2 * width].split_at(width);
            // SAFETY: tasks own disjoint rows.
            swiglu_row(body, gate, up, unsafe { out.part(row * width, width) });
        }
    });
}

per_body! {
    fn swiglu_row(body, gate: &[f32], up: &[f32], out: &mut [f32]) = swiglu_values;
}

#[inline(always)]
fn swiglu_values(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        *out = math::silu(*gate) * up;
    }
}

/// GELU of every value, in place.
pub fn gelu(body: Body, x: &mut [f32]) {
    const LEN: usize = 8192;
    let len = x.len();
    let x = Disjoint::new(x);
    parallel_for(len.div_ceil(LEN), &|task| {
        // SAFETY: tasks own disjoint parts.
        gelu_part(body, unsafe { x.part(task * LEN, LEN.min(len - task * LEN)) });
    });
}

per_body! {
    fn gelu_part(body, x: &mut [f32]) = gelu_values;
}

#[inline(always)]
fn gelu_values(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = math::gelu(*x));
}
