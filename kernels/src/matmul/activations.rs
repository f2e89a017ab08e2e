//! Rows of `f32` quantised to int8, as the products with quantised weights want them.

use crate::cpu::{Body, per_body};
use crate::pool::{Disjoint, parallel_for};

/// Activations share one scale in blocks of this many.
pub(super) const BLOCK: usize = 32;

/// `[M, K]` activations: `x[m][k] ≈ scale · q`, one scale per 32 values of a row.
///
/// `scale = max|x| / 127`; `q` rounds half to even. A block of zeros has scale 0.
#[derive(Debug, Default)]
pub struct Activations {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// `[M, K]`
    pub(super) q: Vec<i8>,
    /// `[M, K / 32]`
    pub(super) scale: Vec<f32>,
    /// `[M, K / 16]`: sums of 16 `q`.
    pub(super) sum: Vec<i32>,
}

impl Activations {
    /// Quantises `x: [rows, cols]`.
    ///
    /// # Panics
    /// If `cols` is no multiple of 32 or `x` has another size.
    pub fn quantise(&mut self, body: Body, x: &[f32], rows: usize, cols: usize) {
        assert_eq!(x.len(), rows * cols);
        assert!(cols.is_multiple_of(BLOCK), "{cols} columns are no whole number of blocks of {BLOCK}");
        (self.rows, self.cols) = (rows, cols);
        self.q.resize(rows * cols, 0);
        self.scale.resize(rows * cols / BLOCK, 0.0);
        self.sum.resize(rows * cols / 16, 0);
        let (q, scale, sum) =
            (Disjoint::new(&mut self.q), Disjoint::new(&mut self.scale), Disjoint::new(&mut self.sum));
        const ROWS_PER_TASK: usize = 32;
        parallel_for(rows.div_ceil(ROWS_PER_TASK), &|task| {
            let start = task * ROWS_PER_TASK * cols;
            let len = (x.len() - start).min(ROWS_PER_TASK * cols);
            // SAFETY: tasks own disjoint rows.
            let (q, scale, sum) =
                unsafe { (q.part(start, len), scale.part(start / BLOCK, len / BLOCK), sum.part(start / 16, len / 16)) };
            quantise(body, &x[start..start + len], q, scale, sum);
        });
    }

    /// The values of a block.
    #[inline(always)]
    pub(super) fn block(&self, row: usize, block: usize) -> &[i8; BLOCK] {
        &self.q.as_chunks::<BLOCK>().0[row * (self.cols / BLOCK) + block]
    }

    #[inline(always)]
    pub(super) fn scale(&self, row: usize, block: usize) -> f32 {
        self.scale[row * (self.cols / BLOCK) + block]
    }

    /// The sum of one half of a block.
    #[inline(always)]
    pub(super) fn half_sum(&self, row: usize, block: usize, half: usize) -> i32 {
        self.sum[2 * (row * (self.cols / BLOCK) + block) + half]
    }

    /// The sum of a block.
    #[inline(always)]
    pub(super) fn block_sum(&self, row: usize, block: usize) -> i32 {
        self.half_sum(row, block, 0) + self.half_sum(row, block, 1)
    }
}

per_body! {
    fn quantise(body, x: &[f32], q: &mut [i8], scale: &mut [f32], sum: &mut [i32]) = quantise_blocks;
}

#[inline(always)]
fn quantise_blocks(x: &[f32], q: &mut [i8], scale: &mut [f32], sum: &mut [i32]) {
    let (x, _) = x.as_chunks::<BLOCK>();
    let (q, _) = q.as_chunks_mut::<BLOCK>();
    let (sum, _) = sum.as_chunks_mut::<2>();
    for (((x, q), scale), sum) in x.iter().zip(q).zip(scale).zip(sum) {
        let largest = x.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        *scale = largest / 127.0;
        for (q, x) in q.iter_mut().zip(x) {
            *q = (x * inverse).round_ties_even() as i8;
        }
        let (halves, _) = q.as_chunks::<16>();
        for (sum, half) in sum.iter_mut().zip(halves) {
            *sum = half.iter().map(|q| i32::from(*q)).sum();
        }
    }
}
