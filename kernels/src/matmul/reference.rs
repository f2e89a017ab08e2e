//! The product in plain loops, directly from the file's bytes. Normative: every ISA must give these bits.

use super::{Activations, Format};
use crate::cpu::{Isa, Numerics};

/// `out[m][n] = Σ_k x[m][k] · w[n][k]` for `x: [M, K]`, `rows` the N rows of `w` as their file holds them.
pub fn multiply(format: Format, rows: &[&[u8]], x: &[f32], cols: usize) -> Vec<f32> {
    let m = x.len() / cols;
    if format.is_dense() {
        return multiply_dense(format, rows, x, cols);
    }
    let mut activations = Activations::default();
    activations.quantise(Isa::Scalar, x, m, cols);
    let mut out = Vec::with_capacity(m * rows.len());
    for row in 0..m {
        out.extend(rows.iter().map(|weights| dot(format, weights, &activations, row)));
    }
    out
}

fn dot(format: Format, weights: &[u8], x: &Activations, row: usize) -> f32 {
    let group_len = format.group_len();
    let mut sum = 0f32;
    for group in 0..x.cols() / group_len {
        let k = group * group_len;
        let x = x.block(row, k / 32);
        let (mut dot, mut total, mut d, mut m) = (0i32, 0i32, 0f32, 0f32);
        for half in 0..group_len / 16 {
            let weights = format.group(weights, k / 16 + half);
            (d, m) = (weights.d, weights.m);
            for (j, q) in weights.q.into_iter().enumerate() {
                let x = i32::from(x.q[0][k % 32 + 16 * half + j]);
                dot += format.whole(q) * x;
                total += x;
            }
        }
        sum = (dot as f32).mul_add(d * x.scale[0], sum);
        if format.has_min() {
            sum = m.mul_add(x.scale[0] * total as f32, sum);
        }
    }
    sum
}

fn multiply_dense(format: Format, rows: &[&[u8]], x: &[f32], cols: usize) -> Vec<f32> {
    let mut out = vec![0f32; x.len() / cols * rows.len()];
    let mut weights = vec![0f32; cols];
    for (n, row) in rows.iter().enumerate() {
        format.dequantise(row, &mut weights);
        for (m, x) in x.chunks_exact(cols).enumerate() {
            out[m * rows.len() + n] = dot_dense(x, &weights);
        }
    }
    out
}

fn dot_dense(x: &[f32], weights: &[f32]) -> f32 {
    x.iter().zip(weights).fold(0f32, |sum, (x, w)| x.mul_add(*w, sum))
}

/// One product with bf16 weights, as `f32`.
pub fn dot_bf16(numerics: Numerics, x: &[f32], weights: &[f32]) -> f32 {
    match numerics {
        Numerics::Portable => dot_dense(x, weights),
        Numerics::Bf16Pairs => dot_in_pairs(x, weights),
        Numerics::Bf16Tiles => dot_in_tiles(x, weights),
    }
}

/// As AVX512-BF16.
pub(super) fn dot_in_pairs(x: &[f32], weights: &[f32]) -> f32 {
    let mut sum = 0f32;
    for (x, weights) in x.chunks(2).zip(weights.chunks(2)) {
        for (x, w) in x.iter().zip(weights).rev() {
            sum = normal(rounded(*x).mul_add(rounded(*w), sum));
        }
    }
    sum
}

/// As AMX.
fn dot_in_tiles(x: &[f32], weights: &[f32]) -> f32 {
    let mut sum = 0f32;
    for (x, weights) in x.chunks(32).zip(weights.chunks(32)) {
        let mut chains = [0f32; 2];
        for (k, (x, w)) in x.iter().zip(weights).enumerate() {
            chains[k % 2] = normal(rounded(*x).mul_add(rounded(*w), chains[k % 2]));
        }
        sum = normal(normal(chains[0] + chains[1]) + sum);
    }
    sum
}

/// Zero instead of a subnormal number.
fn normal(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// To bf16.
fn rounded(x: f32) -> f32 {
    normal(f32::from_bits(u32::from(super::rounded(x)) << 16))
}
