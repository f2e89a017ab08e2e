//! Activations: rows of `f32` quantised to int8 for products with quantised weights.

use std::ops::Range;
use std::slice;

use crate::cpu::Isa;
use crate::math::largest_magnitude;
use crate::matrix_unit;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};
use crate::simd::SimdF32x16;

/// Values per task.
const VALUES_PER_TASK: usize = 4096;

/// Activations share one scale in blocks of this many.
pub(super) const BLOCK: usize = 32;

/// Minimum rows for the matrix unit, whose time does not depend on the rows of a tile.
pub(super) const WORTH_A_UNIT: usize = matrix_unit::ROWS / 2;

/// `[M, K]` activations: `x[m][k] ≈ scale · q`, one scale per 32 values of a row.
///
/// `scale = max|x| / 127`; `q` rounds half to even. A block of zeros has scale 0, one with NaN has scale NaN.
///
/// Rows that are multiplied together are adjacent, in tiles that are read sequentially.
#[derive(Debug, Default)]
pub struct Activations {
    shape: Shape,
    /// All [`Tile`]s, padded to a whole cache line.
    lines: Vec<Line>,
}

/// One block of the `R` rows of a tile.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Tile<const R: usize> {
    pub q: [[i8; BLOCK]; R],
    /// Sums of 16 `q`.
    pub half_sums: [[i32; 2]; R],
    pub scale: [f32; R],
    /// The sum of the block times its scale.
    pub scaled_sum: [f32; R],
}

/// The tiling of rows: `height` rows per tile, fewer in the last; rows beyond M are zeros.
#[derive(Debug, Default, Clone, Copy)]
struct Shape {
    rows: usize,
    cols: usize,
    height: usize,
}

/// Memory of tiles, aligned so that rows of a matrix unit's tile do not cross cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

impl Shape {
    fn tiles(self) -> usize {
        self.rows.div_ceil(self.height)
    }

    fn height_of(self, tile: usize) -> usize {
        let rows = self.height.min(self.rows - tile * self.height);
        if self.height == matrix_unit::ROWS && rows >= WORTH_A_UNIT { self.height } else { rows.next_power_of_two() }
    }

    /// Offset of a tile. Heights of all but the last tile are multiples of four, so each starts a cache line.
    fn lines(self, tile: usize) -> Range<usize> {
        let bytes = |rows: usize| rows * self.cols / BLOCK * size_of::<Tile<1>>();
        let start = bytes(tile * self.height) / size_of::<Line>();
        start..start + bytes(self.height_of(tile)).div_ceil(size_of::<Line>())
    }
}

impl Activations {
    /// Quantises `x: [rows, cols]` for the products of `isa`.
    ///
    /// # Panics
    /// If `cols` is not a multiple of 32 or `x` has the wrong size.
    pub fn quantise(&mut self, isa: Isa, x: &[f32], rows: usize, cols: usize) {
        let mut height = matrix_unit::ROWS;
        if !isa.has_matrix_unit() {
            rows_at_once(isa, &mut height);
        }
        self.quantise_in_tiles(isa, height, x, rows, cols);
    }

    /// The same in tiles of a given height: 4, 8 or 16.
    pub(super) fn quantise_in_tiles(&mut self, isa: Isa, height: usize, x: &[f32], rows: usize, cols: usize) {
        assert_eq!(x.len(), rows * cols);
        assert!(cols.is_multiple_of(BLOCK), "{cols} columns are no whole number of blocks of {BLOCK}");
        let shape = Shape { rows, cols, height };
        let len = if rows == 0 { 0 } else { shape.lines(shape.tiles() - 1).end };
        self.shape = shape;
        self.lines.resize(len, Line { _bytes: [0; 64] });
        let lines = Disjoint::new(&mut self.lines);
        let at_once = (VALUES_PER_TASK / (height * cols).max(1)).max(1);
        parallel_for(shape.tiles().div_ceil(at_once), &|task| {
            for tile in (task * at_once..shape.tiles()).take(at_once) {
                let range = shape.lines(tile);
                // SAFETY: every task owns its tiles.
                let lines = unsafe { lines.part(range.start, range.len()) };
                let first = tile * height;
                let x = &x[first * cols..rows.min(first + height) * cols];
                quantise(isa, x, cols, shape.height_of(tile), lines);
            }
        });
    }

    pub(super) fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Rows of the tile that begins with row `first`, those beyond M included.
    #[inline(always)]
    pub(super) fn height_at(&self, first: usize) -> usize {
        assert!(first.is_multiple_of(self.shape.height), "row {first} begins no tile of {}", self.shape.height);
        self.shape.height_of(first / self.shape.height)
    }

    /// The tile that begins with row `first`, block by block.
    ///
    /// # Panics
    /// If the tile does not have `R` rows.
    #[inline(always)]
    pub(super) fn tile<const R: usize>(&self, first: usize) -> &[Tile<R>] {
        assert_eq!(self.height_at(first), R, "rows of the tile that begins with row {first}");
        let lines = &self.lines[self.shape.lines(first / self.shape.height)];
        // SAFETY: the lines hold as many, which are plain numbers and begin at a multiple of their alignment.
        unsafe { slice::from_raw_parts(lines.as_ptr().cast(), self.shape.cols / BLOCK) }
    }

    /// One block of one row.
    pub(super) fn block(&self, row: usize, block: usize) -> Tile<1> {
        let (first, r) = (row - row % self.shape.height, row % self.shape.height);
        match self.height_at(first) {
            1 => self.tile::<1>(first)[block].row(r),
            2 => self.tile::<2>(first)[block].row(r),
            4 => self.tile::<4>(first)[block].row(r),
            8 => self.tile::<8>(first)[block].row(r),
            _ => self.tile::<16>(first)[block].row(r),
        }
    }
}

impl<const R: usize> Tile<R> {
    const EMPTY: Tile<R> = Tile { q: [[0; BLOCK]; R], half_sums: [[0; 2]; R], scale: [0.0; R], scaled_sum: [0.0; R] };

    fn row(&self, r: usize) -> Tile<1> {
        Tile {
            q: [self.q[r]],
            half_sums: [self.half_sums[r]],
            scale: [self.scale[r]],
            scaled_sum: [self.scaled_sum[r]],
        }
    }
}

per_isa! {
    /// Rows that the ISA multiplies at once.
    fn rows_at_once(isa, height: &mut usize) = rows_of::<L>;
}

#[inline(always)]
fn rows_of<L: SimdF32x16>(height: &mut usize) {
    *height = L::ROWS;
}

per_isa! {
    /// Quantises `x: [1 ..= height, cols]` into a tile.
    fn quantise(isa, x: &[f32], cols: usize, height: usize, lines: &mut [Line]) = quantise_rows::<L>;
}

#[inline(always)]
fn quantise_rows<L: SimdF32x16>(x: &[f32], cols: usize, height: usize, lines: &mut [Line]) {
    match height {
        1 => quantise_tile::<L, 1>(x, cols, lines),
        2 => quantise_tile::<L, 2>(x, cols, lines),
        4 => quantise_tile::<L, 4>(x, cols, lines),
        8 => quantise_tile::<L, 8>(x, cols, lines),
        _ => quantise_tile::<L, 16>(x, cols, lines),
    }
}

#[inline(always)]
fn quantise_tile<L: SimdF32x16, const R: usize>(x: &[f32], cols: usize, lines: &mut [Line]) {
    let blocks = cols / BLOCK;
    assert!(blocks * size_of::<Tile<R>>() <= size_of_val(lines));
    // SAFETY: as in `Activations::tile`.
    let tiles = unsafe { slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<Tile<R>>(), blocks) };
    if x.len() < R * cols {
        tiles.fill(Tile::EMPTY);
    }
    for (r, x) in x.chunks_exact(cols).enumerate() {
        for (tile, x) in tiles.iter_mut().zip(x.as_chunks::<BLOCK>().0) {
            let largest = largest_magnitude(x);
            let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
            let (q, _) = tile.q[r].as_chunks_mut::<16>();
            let sums = &mut tile.half_sums[r];
            for (half, x) in x.as_chunks::<16>().0.iter().enumerate() {
                sums[half] = L::load(x).mul(L::splat(inverse)).round().store_i8s(&mut q[half]);
            }
            tile.scale[r] = largest / 127.0;
            tile.scaled_sum[r] = tile.scale[r] * (sums[0] + sums[1]) as f32;
        }
    }
}
