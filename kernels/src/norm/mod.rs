//! Normalisation of rows: RMSNorm for decoders, LayerNorm for encoders.
//!
//! # Contract
//! RMSNorm: `out = x / √(mean(x²) + ε) · w`. LayerNorm: `out = (x - mean) / √(var + ε) · w + b`. `x, out: [N, H]`,
//! `w, b: [H]`, all `f32`.
//!
//! # Numerics
//! Sums run in 16 interleaved lanes ([`crate::math::sum_in_lanes`]); all bodies give the same bits; error against `f64`
//! below 1e-6 of the row's largest value. The plain body is the reference.
//!
//! # Cost
//! Reads a row two or three times from the nearest cache; bound by that.

use crate::attention::Heads;
use crate::cpu::{Body, per_body};
use crate::math::sum_in_lanes;
use crate::pool::{Disjoint, parallel_for};

const ROWS_PER_TASK: usize = 32;

/// RMSNorm of every row of `x`.
pub fn rms_norm(body: Body, x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    in_rows(x, weight.len(), out, |x, out| rms_norm_rows(body, x, weight, epsilon, out));
}

/// LayerNorm of every row of `x`.
pub fn layer_norm(body: Body, x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) {
    in_rows(x, weight.len(), out, |x, out| layer_norm_rows(body, x, weight, bias, epsilon, out));
}

/// RMSNorm of every query and key head of `qkv: [N, (A + 2K)·D]`, in place; values stay.
pub fn norm_heads(body: Body, heads: Heads, q_norm: &[f32], k_norm: &[f32], epsilon: f32, qkv: &mut [f32]) {
    let (queries, keys) = (heads.query_width(), heads.key_width());
    let mut normed = vec![0f32; queries.max(keys)];
    for row in qkv.chunks_exact_mut(queries + 2 * keys) {
        let (q, rest) = row.split_at_mut(queries);
        for (part, weight) in [(q, q_norm), (&mut rest[..keys], k_norm)] {
            rms_norm_rows(body, part, weight, epsilon, &mut normed[..part.len()]);
            part.copy_from_slice(&normed[..part.len()]);
        }
    }
}

fn in_rows(x: &[f32], width: usize, out: &mut [f32], work: impl Fn(&[f32], &mut [f32]) + Sync) {
    assert_eq!(x.len(), out.len());
    let len = ROWS_PER_TASK * width;
    let out = Disjoint::new(out);
    parallel_for(x.len().div_ceil(len), &|task| {
        let x = &x[task * len..x.len().min((task + 1) * len)];
        // SAFETY: tasks own disjoint rows.
        work(x, unsafe { out.part(task * len, x.len()) });
    });
}

per_body! {
    fn rms_norm_rows(body, x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) = rms_rows;
}

#[inline(always)]
fn rms_rows(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let width = weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let squares = sum_in_lanes(width, |i, sum| x[i].mul_add(x[i], sum));
        let scale = 1.0 / (squares / width as f32 + epsilon).sqrt();
        for i in 0..width {
            out[i] = x[i] * scale * weight[i];
        }
    }
}

per_body! {
    fn layer_norm_rows(body, x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) = layer_rows;
}

#[inline(always)]
fn layer_rows(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) {
    let width = weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let mean = sum_in_lanes(width, |i, sum| sum + x[i]) / width as f32;
        let squares = sum_in_lanes(width, |i, sum| (x[i] - mean).mul_add(x[i] - mean, sum));
        let scale = 1.0 / (squares / width as f32 + epsilon).sqrt();
        for i in 0..width {
            out[i] = ((x[i] - mean) * scale).mul_add(weight[i], bias[i]);
        }
    }
}
