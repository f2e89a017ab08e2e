//! Normalisation of rows: RMSNorm for decoders, LayerNorm for encoders.
//!
//! # Contract
//! RMSNorm: `out = x / √(mean(x²) + ε) · w`. LayerNorm: `out = (x - mean) / √(var + ε) · w + b`. `x, out: [N, H]`,
//! `w, b: [H]`, all `f32`.
//!
//! # Numerics
//! Sums run in 16 interleaved lanes ([`crate::math::sum_in_lanes`]); all ISAs give the same bits; error against `f64`
//! below 1e-6 of the row's largest value. The scalar variant is the reference.
//!
//! # Cost
//! Reads a row two or three times from the nearest cache; bound by that.

use std::mem::MaybeUninit;

use crate::attention::Heads;
use crate::cpu::Isa;
use crate::math::sum_in_lanes;
use crate::output::in_parts;
use crate::per_isa::per_isa;

const ROWS_PER_TASK: usize = 32;

/// RMSNorm of every row of `x`.
pub fn rms_norm(isa: Isa, x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    in_rows(x, weight.len(), |x, out| rms_norm_rows(isa, x, weight, epsilon, out))
}

/// LayerNorm of every row of `x`.
pub fn layer_norm(isa: Isa, x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32) -> Vec<f32> {
    in_rows(x, weight.len(), |x, out| layer_norm_rows(isa, x, weight, bias, epsilon, out))
}

/// RMSNorm of every query and key head of `qkv: [N, (A + 2K)·D]`; values stay.
pub fn norm_heads(isa: Isa, heads: Heads, q_norm: &[f32], k_norm: &[f32], epsilon: f32, qkv: &[f32]) -> Vec<f32> {
    let (queries, keys) = (heads.query_width(), heads.key_width());
    in_rows(qkv, queries + 2 * keys, |qkv, out| {
        let width = queries + 2 * keys;
        for (row, out) in qkv.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            let (q, k) = (&row[..queries], &row[queries..queries + keys]);
            rms_norm_rows(isa, q, q_norm, epsilon, &mut out[..queries]);
            rms_norm_rows(isa, k, k_norm, epsilon, &mut out[queries..queries + keys]);
            out[queries + keys..].write_copy_of_slice(&row[queries + keys..]);
        }
    })
}

/// `write` must write whole rows.
fn in_rows(x: &[f32], width: usize, write: impl Fn(&[f32], &mut [MaybeUninit<f32>]) + Sync) -> Vec<f32> {
    assert!(x.len().is_multiple_of(width), "{} values in rows of {width}", x.len());
    // SAFETY: the functions above write every row.
    unsafe { in_parts(x.len(), ROWS_PER_TASK * width, |range, out| write(&x[range], out)) }
}

per_isa! {
    fn rms_norm_rows(isa, x: &[f32], weight: &[f32], epsilon: f32, out: &mut [MaybeUninit<f32>]) = rms_rows;
}

#[inline(always)]
fn rms_rows(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [MaybeUninit<f32>]) {
    let width = weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let squares = sum_in_lanes(width, |i, sum| x[i].mul_add(x[i], sum));
        let scale = 1.0 / (squares / width as f32 + epsilon).sqrt();
        for i in 0..width {
            out[i].write(x[i] * scale * weight[i]);
        }
    }
}

per_isa! {
    fn layer_norm_rows(isa, x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [MaybeUninit<f32>]) = layer_rows;
}

#[inline(always)]
fn layer_rows(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [MaybeUninit<f32>]) {
    let width = weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let mean = sum_in_lanes(width, |i, sum| sum + x[i]) / width as f32;
        let squares = sum_in_lanes(width, |i, sum| (x[i] - mean).mul_add(x[i] - mean, sum));
        let scale = 1.0 / (squares / width as f32 + epsilon).sqrt();
        for i in 0..width {
            out[i].write(((x[i] - mean) * scale).mul_add(weight[i], bias[i]));
        }
    }
}
