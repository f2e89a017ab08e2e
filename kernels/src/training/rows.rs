//! Operations on rows: RMSNorm and SwiGLU with their gradients.

use std::mem::MaybeUninit;

use crate::attention::Heads;
use crate::cpu::active_isa;
use crate::math::{exp, sum_in_lanes};
use crate::output::in_parts;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};

const ROWS_PER_TASK: usize = 32;
const VALUES_PER_TASK: usize = 1 << 16;

/// `x / √(mean(x²) + ε) · w` of every row of `x: [N, H]`, as in [`crate::norm`].
pub fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    crate::norm::rms_norm(active_isa(), x, weight, epsilon)
}

/// The gradient of [`rms_norm`] for `x: [N, H]`; the weight is frozen.
pub fn rms_norm_backward(x: &[f32], weight: &[f32], epsilon: f32, grad: &[f32]) -> Vec<f32> {
    let width = weight.len();
    assert!(x.len() == grad.len() && x.len().is_multiple_of(width), "{} and {} by {width}", x.len(), grad.len());
    // SAFETY: every row is written.
    unsafe {
        in_parts(x.len(), ROWS_PER_TASK * width, |range, out| {
            norm_backward(active_isa(), &x[range.clone()], weight, epsilon, &grad[range], out);
        })
    }
}

per_isa! {
    fn norm_backward(isa, x: &[f32], weight: &[f32], epsilon: f32, grad: &[f32], out: &mut [MaybeUninit<f32>]) =
        norm_backward_rows;
}

#[inline(always)]
fn norm_backward_rows(x: &[f32], weight: &[f32], epsilon: f32, grad: &[f32], out: &mut [MaybeUninit<f32>]) {
    let width = weight.len();
    let rows = x.chunks_exact(width).zip(grad.chunks_exact(width)).zip(out.chunks_exact_mut(width));
    for ((x, grad), out) in rows {
        let squares = sum_in_lanes(width, |i, sum| x[i].mul_add(x[i], sum));
        let along = sum_in_lanes(width, |i, sum| (grad[i] * weight[i]).mul_add(x[i], sum));
        let scale = 1.0 / (squares / width as f32 + epsilon).sqrt();
        let shrink = -scale * scale * along / width as f32;
        for i in 0..width {
            out[i].write(scale * x[i].mul_add(shrink, grad[i] * weight[i]));
        }
    }
}

/// RMSNorm of every query and key head of `qkv: [N, (A + 2K)·D]`; values stay.
pub fn norm_heads(heads: Heads, q_norm: &[f32], k_norm: &[f32], epsilon: f32, qkv: &[f32]) -> Vec<f32> {
    crate::norm::norm_heads(active_isa(), heads, q_norm, k_norm, epsilon, qkv)
}

/// The gradient of [`norm_heads`] for `qkv`; the weights are frozen.
pub fn norm_heads_backward(
    heads: Heads,
    q_norm: &[f32],
    k_norm: &[f32],
    epsilon: f32,
    qkv: &[f32],
    grad: &[f32],
) -> Vec<f32> {
    let (queries, keys) = (heads.query_width(), heads.key_width());
    let width = queries + 2 * keys;
    assert!(qkv.len() == grad.len() && qkv.len().is_multiple_of(width), "{} and {} by {width}", qkv.len(), grad.len());
    // SAFETY: every row is written.
    unsafe {
        in_parts(qkv.len(), ROWS_PER_TASK * width, |range, out| {
            let rows = qkv[range.clone()].chunks_exact(width).zip(grad[range].chunks_exact(width));
            for ((x, grad), out) in rows.zip(out.chunks_exact_mut(width)) {
                for (part, weight) in [(0..queries, q_norm), (queries..queries + keys, k_norm)] {
                    norm_backward(active_isa(), &x[part.clone()], weight, epsilon, &grad[part.clone()], &mut out[part]);
                }
                out[queries + keys..].write_copy_of_slice(&grad[queries + keys..]);
            }
        })
    }
}

/// `sum += x`.
///
/// # Panics
/// If the lengths differ.
pub fn add(sum: &mut [f32], x: &[f32]) {
    assert_eq!(sum.len(), x.len());
    let len = sum.len();
    let parts = Disjoint::new(sum);
    parallel_for(len.div_ceil(VALUES_PER_TASK), &|task| {
        let range = task * VALUES_PER_TASK..len.min((task + 1) * VALUES_PER_TASK);
        // SAFETY: tasks own disjoint parts.
        let sum = unsafe { parts.part(range.start, range.len()) };
        sum.iter_mut().zip(&x[range]).for_each(|(sum, x)| *sum += x);
    });
}

/// `silu(gate) · up` of every row of `gate_up: [N, 2F]`, gate first.
pub fn swiglu(gate_up: &[f32], width: usize) -> Vec<f32> {
    assert!(gate_up.len().is_multiple_of(2 * width), "{} values in rows of {}", gate_up.len(), 2 * width);
    // SAFETY: every row is written.
    unsafe {
        in_parts(gate_up.len() / 2, ROWS_PER_TASK * width, |range, out| {
            swiglu_forward(active_isa(), &gate_up[2 * range.start..2 * range.end], width, out);
        })
    }
}

per_isa! {
    fn swiglu_forward(isa, gate_up: &[f32], width: usize, out: &mut [MaybeUninit<f32>]) = swiglu_rows;
}

#[inline(always)]
fn swiglu_rows(gate_up: &[f32], width: usize, out: &mut [MaybeUninit<f32>]) {
    for (row, out) in gate_up.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
        let (gate, up) = row.split_at(width);
        for i in 0..width {
            out[i].write(gate[i] / (1.0 + exp(-gate[i])) * up[i]);
        }
    }
}

/// The gradient of [`swiglu`] for `gate_up: [N, 2F]`, from that of its output `[N, F]`.
pub fn swiglu_backward(gate_up: &[f32], width: usize, grad: &[f32]) -> Vec<f32> {
    assert!(gate_up.len() == 2 * grad.len() && grad.len().is_multiple_of(width), "{} by {width}", grad.len());
    // SAFETY: every row is written.
    unsafe {
        in_parts(gate_up.len(), ROWS_PER_TASK * 2 * width, |range, out| {
            swiglu_gradient(active_isa(), &gate_up[range.clone()], width, &grad[range.start / 2..range.end / 2], out);
        })
    }
}

per_isa! {
    fn swiglu_gradient(isa, gate_up: &[f32], width: usize, grad: &[f32], out: &mut [MaybeUninit<f32>]) =
        swiglu_gradient_rows;
}

#[inline(always)]
fn swiglu_gradient_rows(gate_up: &[f32], width: usize, grad: &[f32], out: &mut [MaybeUninit<f32>]) {
    let rows = gate_up.chunks_exact(2 * width).zip(grad.chunks_exact(width)).zip(out.chunks_exact_mut(2 * width));
    for ((row, grad), out) in rows {
        let (gate, up) = row.split_at(width);
        let (gate_out, up_out) = out.split_at_mut(width);
        for i in 0..width {
            let sigmoid = 1.0 / (1.0 + exp(-gate[i]));
            let silu = gate[i] * sigmoid;
            gate_out[i].write(grad[i] * up[i] * sigmoid * (1.0 + gate[i] - silu));
            up_out[i].write(grad[i] * silu);
        }
    }
}

/// `ln Σ exp(x)` of a row of logits, and the place of the largest.
pub fn log_sum_exp(logits: &[f32]) -> (f32, usize) {
    let (mut most, mut first) = (f32::NEG_INFINITY, 0);
    for (at, logit) in logits.iter().enumerate() {
        if *logit > most {
            (most, first) = (*logit, at);
        }
    }
    let mut sum = 0.0;
    exp_sum(active_isa(), logits, most, &mut sum);
    (most + sum.ln(), first)
}

per_isa! {
    fn exp_sum(isa, logits: &[f32], most: f32, sum: &mut f32) = exp_sum_row;
}

#[inline(always)]
fn exp_sum_row(logits: &[f32], most: f32, sum: &mut f32) {
    *sum = sum_in_lanes(logits.len(), |i, sum| sum + exp(logits[i] - most));
}

/// Replaces a row of logits with the gradient of `grad · log p(target)`; `sum` is the row's [`log_sum_exp`].
pub fn log_prob_gradient(logits: &mut [f32], sum: f32, target: usize, grad: f32) {
    minus_probabilities(active_isa(), logits, sum, grad);
    logits[target] += grad;
}

per_isa! {
    fn minus_probabilities(isa, logits: &mut [f32], sum: f32, grad: f32) = minus_probabilities_row;
}

#[inline(always)]
fn minus_probabilities_row(logits: &mut [f32], sum: f32, grad: f32) {
    for logit in logits {
        *logit = -grad * exp(*logit - sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|i| ((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    /// Compares a gradient with central differences of `Σ forward(x) · grad`.
    fn check(x: &[f32], grad: &[f32], forward: impl Fn(&[f32]) -> Vec<f32>, backward: &[f32]) {
        const STEP: f32 = 1e-2;
        let value =
            |x: &[f32]| -> f64 { forward(x).iter().zip(grad).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum() };
        for i in 0..x.len() {
            let moved = |step: f32| {
                let mut x = x.to_vec();
                x[i] += step;
                value(&x)
            };
            let want = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
            assert!((f64::from(backward[i]) - want).abs() < 2e-3, "at {i}: {}, want {want}", backward[i]);
        }
    }

    #[test]
    fn the_gradient_of_rms_norm_is_that_of_finite_differences() {
        let (x, weight, grad) = (numbers(3 * 40, 1), numbers(40, 2), numbers(3 * 40, 3));
        check(&x, &grad, |x| rms_norm(x, &weight, 1e-5), &rms_norm_backward(&x, &weight, 1e-5, &grad));
    }

    #[test]
    fn the_gradient_of_normed_heads_is_that_of_finite_differences() {
        let heads = Heads { queries: 2, keys: 1, dim: 8 };
        let (qkv, grad, weights) = (numbers(3 * 32, 1), numbers(3 * 32, 2), numbers(16, 3));
        let (q_norm, k_norm) = weights.split_at(8);
        let backward = norm_heads_backward(heads, q_norm, k_norm, 1e-5, &qkv, &grad);
        check(&qkv, &grad, |qkv| norm_heads(heads, q_norm, k_norm, 1e-5, qkv), &backward);
    }

    #[test]
    fn the_gradient_of_swiglu_is_that_of_finite_differences() {
        let (x, grad) = (numbers(3 * 40, 1), numbers(3 * 20, 3));
        check(&x, &grad, |x| swiglu(x, 20), &swiglu_backward(&x, 20, &grad));
    }

    #[test]
    fn the_gradient_of_a_log_probability_is_that_of_finite_differences() {
        let logits = numbers(50, 4);
        let (sum, first) = log_sum_exp(&logits);
        assert!(logits.iter().all(|logit| *logit <= logits[first]));
        let mut backward = logits.clone();
        log_prob_gradient(&mut backward, sum, 7, 0.5);
        check(&logits, &[0.5], |logits| vec![logits[7] - log_sum_exp(logits).0], &backward);
    }
}
