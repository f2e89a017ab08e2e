//! Rows of `f32` quantised to int8, as the products with quantised weights want them.

use crate::cpu::{Body, per_body};
use crate::lanes::Lanes;
use crate::pool::{Disjoint, parallel_for};
use crate::tiles::{Left, ROWS};

/// Values that are worth a task.
const VALUES_PER_TASK: usize = 4096;

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
    /// `[M, K / 32]`: the sum of a block times its scale.
    pub(super) scaled_sum: Vec<f32>,
    /// `[M / 16, K / 32]`: the same once more in tiles of 16 rows, for bodies that multiply those; missing rows are zeros.
    tiles: Vec<Tile>,
}

/// A block of 16 rows.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Tile {
    pub q: Left,
    pub scale: [f32; ROWS],
    pub scaled_sum: [f32; ROWS],
}

const EMPTY: Tile = Tile { q: [[0; BLOCK]; ROWS], scale: [0.0; ROWS], scaled_sum: [0.0; ROWS] };

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
        self.scaled_sum.resize(rows * cols / BLOCK, 0.0);
        let (q, scale, sum) =
            (Disjoint::new(&mut self.q), Disjoint::new(&mut self.scale), Disjoint::new(&mut self.sum));
        let scaled_sum = Disjoint::new(&mut self.scaled_sum);
        let task_len = (VALUES_PER_TASK / cols).max(1) * cols;
        parallel_for(x.len().div_ceil(task_len), &|task| {
            let start = task * task_len;
            let len = (x.len() - start).min(task_len);
            // SAFETY: tasks own disjoint rows.
            let (q, sum) = unsafe { (q.part(start, len), sum.part(start / 16, len / 16)) };
            // SAFETY: as above.
            let (scale, scaled_sum) =
                unsafe { (scale.part(start / BLOCK, len / BLOCK), scaled_sum.part(start / BLOCK, len / BLOCK)) };
            quantise(body, &x[start..start + len], q, scale, sum, scaled_sum);
        });
    }

    /// Copies everything into tiles.
    pub(super) fn arrange_tiles(&mut self) {
        let blocks = self.cols / BLOCK;
        let mut tiles = std::mem::take(&mut self.tiles);
        tiles.clear();
        tiles.resize(self.rows.div_ceil(ROWS) * blocks, EMPTY);
        let all = Disjoint::new(&mut tiles);
        parallel_for(self.rows.div_ceil(ROWS), &|group| {
            // SAFETY: every task owns the tiles of its rows.
            let tiles = unsafe { all.part(group * blocks, blocks) };
            for (r, row) in (group * ROWS..self.rows).take(ROWS).enumerate() {
                let q = self.q[row * self.cols..][..self.cols].as_chunks::<BLOCK>().0;
                for (block, (tile, q)) in tiles.iter_mut().zip(q).enumerate() {
                    tile.q[r] = *q;
                    tile.scale[r] = self.scale(row, block);
                    tile.scaled_sum[r] = self.scaled_sum(row, block);
                }
            }
        });
        self.tiles = tiles;
    }

    /// The tiles of rows `16·group ..`, block by block.
    #[inline(always)]
    pub(super) fn tiles(&self, group: usize) -> &[Tile] {
        let blocks = self.cols / BLOCK;
        &self.tiles[group * blocks..][..blocks]
    }

    /// The values of a block, in fours.
    #[inline(always)]
    pub(super) fn block(&self, row: usize, block: usize) -> &[[i8; 4]; BLOCK / 4] {
        let (fours, _) = self.q.as_chunks::<4>();
        &fours.as_chunks::<{ BLOCK / 4 }>().0[row * (self.cols / BLOCK) + block]
    }

    #[inline(always)]
    pub(super) fn scaled_sum(&self, row: usize, block: usize) -> f32 {
        self.scaled_sum[row * (self.cols / BLOCK) + block]
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
    fn quantise(body, x: &[f32], q: &mut [i8], scale: &mut [f32], sum: &mut [i32], scaled_sum: &mut [f32]) =
        quantise_blocks::<L>;
}

#[inline(always)]
fn quantise_blocks<L: Lanes>(x: &[f32], q: &mut [i8], scale: &mut [f32], sum: &mut [i32], scaled_sum: &mut [f32]) {
    let (x, _) = x.as_chunks::<16>();
    let (q, _) = q.as_chunks_mut::<16>();
    for (block, x) in x.as_chunks::<2>().0.iter().enumerate() {
        let halves = [L::load(&x[0]), L::load(&x[1])];
        let largest = halves[0].abs().max(halves[1].abs()).largest();
        let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        scale[block] = largest / 127.0;
        for (half, x) in halves.into_iter().enumerate() {
            let index = 2 * block + half;
            sum[index] = x.mul(L::splat(inverse)).round().store_i8s(&mut q[index]);
        }
        scaled_sum[block] = scale[block] * (sum[2 * block] + sum[2 * block + 1]) as f32;
    }
}
