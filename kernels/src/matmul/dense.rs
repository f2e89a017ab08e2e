//! Bodies in plain Rust: the dense product for every instruction set, and the quantised one where nothing better runs.

use super::PANEL;
use super::matrix::Tile;
use crate::cpu::per_body;

per_body! {
    /// `out: [R, 16]` for R rows of `x`, 1 to 8, and dense weights `[K, 16]`.
    pub(super) fn multiply(body, weights: &[f32], x: &[f32], cols: usize, out: &mut [[f32; PANEL]]) = multiply_rows;
}

#[inline(always)]
fn multiply_rows(weights: &[f32], x: &[f32], cols: usize, out: &mut [[f32; PANEL]]) {
    if out.len() > 4 {
        multiply_fixed::<8>(weights, x, cols, out);
    } else {
        multiply_fixed::<4>(weights, x, cols, out);
    }
}

/// Missing rows repeat the last: a register of sums that nobody reads is cheaper than another loop.
#[inline(always)]
fn multiply_fixed<const R: usize>(weights: &[f32], x: &[f32], cols: usize, out: &mut [[f32; PANEL]]) {
    let rows: [&[f32]; R] = std::array::from_fn(|r| &x[r.min(out.len() - 1) * cols..][..cols]);
    let (weights, _) = weights.as_chunks::<PANEL>();
    let mut sums = [[0f32; PANEL]; R];
    for (k, w) in weights[..cols].iter().enumerate() {
        for r in 0..R {
            let a = rows[r][k];
            for n in 0..PANEL {
                sums[r][n] = a.mul_add(w[n], sums[r][n]);
            }
        }
    }
    out.copy_from_slice(&sums[..out.len()]);
}

/// The quantised product of one row without any special instruction.
pub(super) fn multiply_quantised(tile: &Tile<'_>, row: usize) -> [f32; PANEL] {
    let Tile { panel, x, zero, group_len } = *tile;
    std::array::from_fn(|n| {
        let mut sum = 0f32;
        for group in 0..x.cols / group_len {
            let mut dot = -zero * tile.sum(row, group);
            for j in 0..group_len {
                let k = group * group_len + j;
                let q = panel.q[k / 4 * 64 + 4 * n + k % 4];
                dot += i32::from(q) * i32::from(x.q[row * x.cols + k]);
            }
            let a = tile.scale(row, group);
            sum = (dot as f32).mul_add(panel.d[group * PANEL + n] * a, sum);
            if let Some(m) = panel.m.get(group * PANEL + n) {
                sum = m.mul_add(a * tile.sum(row, group) as f32, sum);
            }
        }
        sum
    })
}
