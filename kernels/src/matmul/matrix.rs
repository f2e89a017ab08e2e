//! A weight matrix, packed once and multiplied ever after.

use std::cell::RefCell;
use std::ops::Range;

use super::pack::{pack_panel, panel_bytes};
use super::unpack::{Panel, unpack};
use super::{Activations, Format, PANEL, ROWS_PER_PASS, avx2, avx512, dense};
use crate::cpu::Body;
use crate::pool::{Disjoint, parallel_for};

/// Why bytes are no weight matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The format stores whole blocks.
    #[error("{cols} columns are no whole number of {format:?} blocks of {}", format.block_len())]
    Blocks { format: Format, cols: usize },
    /// The bytes are of another size than the shape says.
    #[error("{rows} x {cols} {format:?} weights take {want} bytes, not {got}")]
    Bytes { format: Format, rows: usize, cols: usize, want: usize, got: usize },
    /// Stacked matrices must have the same columns.
    #[error("matrices of {left} and {right} columns cannot be stacked")]
    Stack { left: usize, right: usize },
}

/// `[N, K]` weights in panels of 16 rows; several parts of different formats may be stacked along N.
#[derive(Debug)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    format: Format,
    first_row: usize,
    rows: usize,
    panel_bytes: usize,
    packed: Vec<u8>,
}

impl Matrix {
    /// Packs a matrix from its rows as a file holds them, one after the other.
    ///
    /// # Errors
    /// If the columns are no whole number of blocks or the number of bytes does not fit the shape.
    pub fn pack(format: Format, rows: usize, cols: usize, bytes: &[u8]) -> Result<Matrix, MatrixError> {
        Matrix::pack_reordered(format, rows, cols, bytes, |row| row)
    }

    /// Packs with row `n` taken from row `source(n)` of the file.
    ///
    /// # Errors
    /// As [`Matrix::pack`].
    pub fn pack_reordered(
        format: Format,
        rows: usize,
        cols: usize,
        bytes: &[u8],
        source: impl Fn(usize) -> usize + Sync,
    ) -> Result<Matrix, MatrixError> {
        let row_bytes = format.row_bytes(cols).ok_or(MatrixError::Blocks { format, cols })?;
        let (want, got) = (rows * row_bytes, bytes.len());
        if want != got {
            return Err(MatrixError::Bytes { format, rows, cols, want, got });
        }
        let panel_bytes = panel_bytes(format, cols);
        let mut packed = vec![0u8; rows.div_ceil(PANEL) * panel_bytes];
        let panels = Disjoint::new(&mut packed);
        parallel_for(rows.div_ceil(PANEL), &|p| {
            // SAFETY: every task owns one panel.
            let panel = unsafe { panels.part(p * panel_bytes, panel_bytes) };
            let sources =
                (p * PANEL..rows.min((p + 1) * PANEL)).map(|row| &bytes[source(row) * row_bytes..][..row_bytes]);
            pack_panel(format, &sources.collect::<Vec<_>>(), cols, panel);
        });
        let part = Part { format, first_row: 0, rows, panel_bytes, packed };
        Ok(Matrix { rows, cols, parts: vec![part] })
    }

    /// Puts matrices with the same columns on top of each other: one product for all of them.
    ///
    /// # Errors
    /// If their columns differ.
    pub fn stack(matrices: impl IntoIterator<Item = Matrix>) -> Result<Matrix, MatrixError> {
        let mut stacked = Matrix { rows: 0, cols: 0, parts: Vec::new() };
        for matrix in matrices {
            if !stacked.parts.is_empty() && stacked.cols != matrix.cols {
                return Err(MatrixError::Stack { left: stacked.cols, right: matrix.cols });
            }
            stacked.cols = matrix.cols;
            let first_row = stacked.rows;
            stacked
                .parts
                .extend(matrix.parts.into_iter().map(|part| Part { first_row: first_row + part.first_row, ..part }));
            stacked.rows += matrix.rows;
        }
        Ok(stacked)
    }

    /// N, the width of the output.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// K, the width of the input.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Bytes that the packed weights take.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.packed.len()).sum()
    }

    /// The formats of the parts, in order.
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        self.parts.iter().map(|part| part.format)
    }

    /// Row `row` as `f32`: an embedding lookup.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows && out.len() == self.cols, "row {row} of {} x {}", self.rows, self.cols);
        for part in &self.parts {
            if (part.first_row..part.first_row + part.rows).contains(&row) {
                part.row(self.cols, row - part.first_row, out);
            }
        }
    }

    /// `out: [M, N] = x: [M, K] · wᵀ`.
    ///
    /// # Panics
    /// If a slice has another size.
    pub fn multiply(&self, body: Body, x: &[f32], out: &mut [f32]) {
        let m = x.len() / self.cols;
        assert!(x.len() == m * self.cols && out.len() == m * self.rows, "{m} rows of {} x {}", self.rows, self.cols);
        thread_local!(static ACTIVATIONS: RefCell<Activations> = RefCell::default());
        ACTIVATIONS.with_borrow_mut(|activations| {
            if self.parts.iter().any(|part| !part.format.is_dense()) {
                activations.quantise(body, x, m, self.cols);
            }
            let input = Input { x, quantised: activations, rows: m, cols: self.cols };
            self.multiply_panels(body, &input, out);
        });
    }

    fn multiply_panels(&self, body: Body, input: &Input<'_>, out: &mut [f32]) {
        let out = Output { sums: Disjoint::new(out), width: self.rows };
        let passes = input.rows.div_ceil(ROWS_PER_PASS);
        let panels: Vec<(&Part, usize)> =
            self.parts.iter().flat_map(|part| (0..part.rows.div_ceil(PANEL)).map(move |p| (part, p))).collect();
        parallel_for(panels.len() * passes, &|task| {
            let (part, p) = panels[task / passes];
            let first = task % passes * ROWS_PER_PASS;
            part.multiply(body, p, input, first..input.rows.min(first + ROWS_PER_PASS), &out);
        });
    }
}

/// What a product reads: the rows as they came and, if any part needs them, quantised.
struct Input<'a> {
    x: &'a [f32],
    quantised: &'a Activations,
    rows: usize,
    cols: usize,
}

/// `[M, N]` of which every task writes 16 columns of some rows.
struct Output<'a> {
    sums: Disjoint<'a, f32>,
    width: usize,
}

impl Output<'_> {
    fn write(&self, row: usize, col: usize, sums: &[f32]) {
        // SAFETY: a (row, panel) pair belongs to one task.
        unsafe { self.sums.part(row * self.width + col, sums.len()) }.copy_from_slice(sums);
    }
}

/// A panel and the activations to multiply it with.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub panel: &'a Panel,
    pub x: &'a Activations,
    pub zero: i32,
    pub group_len: usize,
}

impl Tile<'_> {
    #[inline(always)]
    pub fn scale(&self, row: usize, group: usize) -> f32 {
        self.x.scale[(row * self.x.cols + group * self.group_len) / 32]
    }

    #[inline(always)]
    pub fn sum(&self, row: usize, group: usize) -> i32 {
        if self.group_len == 16 { self.x.sum[row * self.x.cols / 16 + group] } else { self.x.block_sum(row, group) }
    }
}

impl Part {
    fn row(&self, cols: usize, row: usize, out: &mut [f32]) {
        let packed = &self.packed[row / PANEL * self.panel_bytes..][..self.panel_bytes];
        let lane = row % PANEL;
        with_panel(|panel| {
            unpack(crate::cpu::body(), self.format, packed, cols, panel);
            for (k, out) in out.iter_mut().enumerate() {
                *out = if self.format.is_dense() {
                    panel.dense[k * PANEL + lane]
                } else {
                    let group = k / self.format.group_len() * PANEL + lane;
                    let q = i32::from(panel.q[k / 4 * 64 + 4 * lane + k % 4]) - self.format.zero();
                    panel.d[group].mul_add(q as f32, panel.m.get(group).copied().unwrap_or(0.0))
                };
            }
        });
    }

    fn multiply(&self, body: Body, p: usize, input: &Input<'_>, rows: Range<usize>, out: &Output<'_>) {
        let packed = &self.packed[p * self.panel_bytes..][..self.panel_bytes];
        let col = self.first_row + p * PANEL;
        let width = PANEL.min(self.rows - p * PANEL);
        with_panel(|panel| {
            unpack(body, self.format, packed, input.cols, panel);
            if self.format.is_dense() {
                multiply_dense(body, panel, input, rows, |row, sums| out.write(row, col, &sums[..width]));
            } else {
                let (zero, group_len) = (self.format.zero(), self.format.group_len());
                let tile = Tile { panel, x: input.quantised, zero, group_len };
                multiply_quantised(body, &tile, rows, |row, sums| out.write(row, col, &sums[..width]));
            }
        });
    }
}

/// Lends the thread's scratch panel.
fn with_panel(f: impl FnOnce(&mut Panel)) {
    thread_local!(static PANEL_SCRATCH: RefCell<Panel> = RefCell::default());
    PANEL_SCRATCH.with_borrow_mut(f);
}

fn multiply_dense(
    body: Body,
    panel: &Panel,
    input: &Input<'_>,
    rows: Range<usize>,
    mut write: impl FnMut(usize, &[f32; PANEL]),
) {
    let mut row = rows.start;
    while row < rows.end {
        let count = (rows.end - row).min(8);
        let mut sums = [[0f32; PANEL]; 8];
        let x = &input.x[row * input.cols..][..count * input.cols];
        dense::multiply(body, &panel.dense, x, input.cols, &mut sums[..count]);
        sums[..count].iter().enumerate().for_each(|(r, sums)| write(row + r, sums));
        row += count;
    }
}

/// Calls `$body::multiply::<R>` for as many rows at once as the body takes.
macro_rules! in_tiles {
    ($body:ident, $tile:ident, $rows:ident, $write:ident, [$($r:literal)*]) => {{
        let mut row = $rows.start;
        while row < $rows.end {
            let count = ($rows.end - row).min($body::ROWS);
            match count {
                $($r => {
                    // SAFETY: the body was chosen because the processor has it.
                    let sums = unsafe { $body::multiply::<$r>($tile, row) };
                    sums.iter().enumerate().for_each(|(r, sums)| $write(row + r, sums));
                })*
                _ => unreachable!("at most {} rows", $body::ROWS),
            }
            row += count;
        }
    }};
}

fn multiply_quantised(body: Body, tile: &Tile<'_>, rows: Range<usize>, mut write: impl FnMut(usize, &[f32; PANEL])) {
    match body {
        #[cfg(target_arch = "x86_64")]
        Body::Avx512 => in_tiles!(avx512, tile, rows, write, [1 2 3 4 5 6 7 8]),
        #[cfg(target_arch = "x86_64")]
        Body::Avx2 => in_tiles!(avx2, tile, rows, write, [1 2 3 4]),
        _ => rows.for_each(|row| write(row, &dense::multiply_quantised(tile, row))),
    }
}
