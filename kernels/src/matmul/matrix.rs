//! A packed weight matrix and its products.

use std::cell::RefCell;
use std::ops::Range;

use bytes::Bytes;

use super::bf16::{self, Rounded};
use super::output::{Columns, Output, RowEpilogue, to_be_written};
use super::pack::{pack_panel, panel_bytes};
use super::panel::{self, Rows};
use super::{Activations, Format, PANEL, ROWS_PER_PASS, tiled};
use crate::cpu::Isa;
use crate::pool::{Disjoint, parallel_for, threads};

/// Weight bytes times rows per task: memory is read fastest in long runs.
const RUN_BYTES: usize = 4 << 20;

const TASKS_PER_THREAD: usize = 4;

/// Why bytes cannot be packed as a weight matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The format stores whole blocks.
    #[error("{cols} columns are no whole number of {format:?} blocks of {}", format.block_len())]
    Blocks { format: Format, cols: usize },
    /// The number of bytes does not match the shape.
    #[error("{rows} x {cols} {format:?} weights take {want} bytes, not {got}")]
    Bytes { format: Format, rows: usize, cols: usize, want: usize, got: usize },
    /// Stacked matrices must have the same columns.
    #[error("matrices of {left} and {right} columns cannot be stacked")]
    Stack { left: usize, right: usize },
}

/// `[N, K]` weights in panels of 16 rows; several parts of different formats may be stacked along N.
/// A clone shares the weights.
#[derive(Debug, Clone)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    format: Format,
    first_row: usize,
    rows: usize,
    panel_bytes: usize,
    packed: Bytes,
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
        Ok(Matrix::of_one(format, rows, cols, packed.into()))
    }

    /// A matrix of packed weights from [`Matrix::packed`], in memory or in a mapped file.
    ///
    /// # Errors
    /// If the columns are no whole number of blocks or the number of bytes does not fit the shape.
    pub fn from_packed(format: Format, rows: usize, cols: usize, packed: Bytes) -> Result<Matrix, MatrixError> {
        if format.row_bytes(cols).is_none() {
            return Err(MatrixError::Blocks { format, cols });
        }
        let (want, got) = (rows.div_ceil(PANEL) * panel_bytes(format, cols), packed.len());
        if want != got {
            return Err(MatrixError::Bytes { format, rows, cols, want, got });
        }
        Ok(Matrix::of_one(format, rows, cols, packed))
    }

    fn of_one(format: Format, rows: usize, cols: usize, packed: Bytes) -> Matrix {
        let part = Part { format, first_row: 0, rows, panel_bytes: panel_bytes(format, cols), packed };
        Matrix { rows, cols, parts: vec![part] }
    }

    /// The packed weights, in the layout of [`LAYOUT`](super::LAYOUT), and their format; `None` for a stack of several.
    pub fn packed(&self) -> Option<(Format, Bytes)> {
        let [part] = &self.parts[..] else { return None };
        Some((part.format, part.packed.clone()))
    }

    /// Stacks matrices of equal width along N, so that one product serves all of them.
    ///
    /// # Errors
    /// If their widths differ.
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
    pub fn formats(&self) -> impl Iterator<Item = Format> + Clone {
        self.parts.iter().map(|part| part.format)
    }

    /// Row `row` as `f32`: an embedding lookup.
    ///
    /// # Panics
    /// If the row is out of range.
    pub fn row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows && out.len() == self.cols, "row {row} of {} x {}", self.rows, self.cols);
        for part in &self.parts {
            if (part.first_row..part.first_row + part.rows).contains(&row) {
                let row = row - part.first_row;
                let panel = part.panel(row / PANEL);
                let weight = |col| panel::weight(part.format, panel, row % PANEL, col);
                out.iter_mut().enumerate().for_each(|(col, out)| *out = weight(col));
            }
        }
    }

    /// `x: [M, K] · wᵀ + bias: [N]`, then the epilogue.
    ///
    /// # Panics
    /// If a slice has the wrong size, or if gate and up weights of SwiGLU are not two equal halves of a stack.
    pub fn product(&self, isa: Isa, x: &[f32], bias: Option<&[f32]>, epilogue: RowEpilogue<'_>) -> Vec<f32> {
        let width = match epilogue {
            RowEpilogue::SwiGlu => self.rows / 2,
            _ => self.rows,
        };
        assert!(bias.is_none_or(|bias| bias.len() == self.rows), "a bias for {} rows", self.rows);
        let len = x.len() / self.cols * width;
        let mut out = Vec::with_capacity(len);
        match epilogue {
            RowEpilogue::SwiGlu => {
                let halves = self.rows == 2 * width && self.parts.iter().any(|part| part.first_row == width);
                assert!(halves, "gate and up weights are a stack of two");
            }
            RowEpilogue::Sum(y) => assert_eq!(y.len(), len, "a residual of {width} columns"),
            RowEpilogue::None | RowEpilogue::Gelu => {}
        }
        self.multiply_into(isa, x, epilogue, &Output::new(&mut out.spare_capacity_mut()[..len], width, bias));
        // SAFETY: every value was written.
        unsafe { out.set_len(len) };
        out
    }

    /// `out: [M, N] = x: [M, K] · wᵀ`.
    ///
    /// # Panics
    /// If a slice has another size.
    pub fn multiply(&self, isa: Isa, x: &[f32], out: &mut [f32]) {
        assert_eq!(out.len(), x.len() / self.cols * self.rows, "{} rows of {}", x.len() / self.cols, self.rows);
        self.multiply_into(isa, x, RowEpilogue::None, &Output::new(to_be_written(out), self.rows, None));
    }

    /// Writes every value of `out`.
    fn multiply_into(&self, isa: Isa, x: &[f32], epilogue: RowEpilogue<'_>, out: &Output<'_>) {
        let m = x.len() / self.cols;
        assert!(x.len() == m * self.cols, "{} values in rows of {}", x.len(), self.cols);
        thread_local!(static LEFT: RefCell<Left> = RefCell::default());
        LEFT.with_borrow_mut(|left| {
            let rows = left.prepare(isa, x, m, self.cols, self.formats());
            self.multiply_panels(isa, rows, epilogue, out);
        });
    }

    /// Some values of `x: [1, K] · wᵀ`: those of the output columns `wanted`, ascending, into `out`, one each. They have the
    /// bits that [`Matrix::multiply`] gives; only the panels that contain them are read.
    ///
    /// # Panics
    /// If a slice has the wrong size or a column is out of range.
    pub fn multiply_some(&self, isa: Isa, x: &[f32], wanted: &[u32], out: &mut [f32]) {
        assert!(x.len() == self.cols && out.len() == wanted.len(), "one row of {} columns", self.cols);
        let mut panels: Vec<(&Part, usize)> = wanted.iter().map(|column| self.panel_of(*column as usize)).collect();
        panels.dedup_by_key(|(part, p)| part.first_row + *p * PANEL);
        let mut left = Left::default();
        let rows = left.prepare(isa, x, 1, self.cols, panels.iter().map(|(part, _)| part.format));
        let mut sums = vec![[0f32; PANEL]; panels.len()];
        let all = Output::new(to_be_written(sums.as_flattened_mut()), panels.len() * PANEL, None);
        parallel_for(panels.len(), &|task| {
            let (part, p) = panels[task];
            // SAFETY: every task owns one panel.
            let out = unsafe { all.columns(task * PANEL, PANEL, RowEpilogue::None) };
            part.multiply(isa, [Some((p, out)), None], rows, 0..1);
        });
        let columns =
            |(part, p): &(&Part, usize)| part.first_row + p * PANEL..part.first_row + part.rows.min((p + 1) * PANEL);
        let mut task = 0;
        for (column, out) in wanted.iter().zip(out) {
            while !columns(&panels[task]).contains(&(*column as usize)) {
                task += 1;
            }
            *out = sums[task][*column as usize - columns(&panels[task]).start];
        }
    }

    /// Panel `p` of a matrix of one dense part.
    pub(super) fn dense_panel(&self, p: usize) -> (Format, &[u8]) {
        (self.parts[0].format, self.parts[0].panel(p))
    }

    /// Neighbouring panels of a matrix of one dense part.
    pub(super) fn dense_panels(&self, panels: Range<usize>) -> (Format, &[u8]) {
        let part = &self.parts[0];
        (part.format, &part.packed[panels.start * part.panel_bytes..panels.end * part.panel_bytes])
    }

    fn panel_of(&self, column: usize) -> (&Part, usize) {
        let holds = |part: &&Part| (part.first_row..part.first_row + part.rows).contains(&column);
        let part = self.parts.iter().find(holds);
        let part = part.unwrap_or_else(|| panic!("column {column} of {}", self.rows));
        (part, (column - part.first_row) / PANEL)
    }

    fn multiply_panels(&self, isa: Isa, rows: Rows<'_>, epilogue: RowEpilogue<'_>, out: &Output<'_>) {
        let m = rows.x.len() / rows.cols;
        let passes = m.div_ceil(ROWS_PER_PASS);
        let panels = self.panels(out.width());
        let run = self.panels_at_once(isa, m, panels.len());
        let gated = matches!(epilogue, RowEpilogue::SwiGlu);
        parallel_for(panels.len().div_ceil(run) * passes, &|task| {
            let first = task % passes * ROWS_PER_PASS;
            let pass = first..m.min(first + ROWS_PER_PASS);
            let run = panels.iter().skip(task / passes * run).take(run);
            let products = run.clone().map(|(part, p)| {
                let (column, count) = part.columns(*p);
                // SAFETY: a pass of rows and a panel belong to one task.
                (*part, *p, unsafe { out.columns(column, count, if gated { RowEpilogue::None } else { epilogue }) })
            });
            multiply_run(isa, products, rows, &pass);
            if !gated {
                return;
            }
            // Behind all gates of the task, so that both are read in long runs.
            let products = run.map(|(gate, p)| {
                let (column, count) = gate.columns(*p);
                let (part, p) = self.panel_of(out.width() + column);
                assert_eq!(
                    part.columns(p),
                    (out.width() + column, count),
                    "gates in other panels than what they are for"
                );
                // SAFETY: as above; the gates were written just now.
                (part, p, unsafe { out.columns(column, count, epilogue) })
            });
            multiply_run(isa, products, rows, &pass);
        });
    }

    /// The panels of the first `width` rows.
    fn panels(&self, width: usize) -> Vec<(&Part, usize)> {
        let parts = self.parts.iter().filter(|part| part.first_row < width);
        parts.flat_map(|part| (0..part.rows.div_ceil(PANEL)).map(move |p| (part, p))).collect()
    }

    /// Panels per task. Few rows are memory-bound, and memory is read fastest in long runs; many rows are compute-bound. Every
    /// thread should get several tasks, so that all finish together.
    fn panels_at_once(&self, isa: Isa, m: usize, panels: usize) -> usize {
        let panel_bytes = self.bytes().div_ceil(panels.max(1)).max(1);
        let together = if isa.multiplies_bf16() { 2 } else { 1 };
        (RUN_BYTES / (panel_bytes * m.max(1)))
            .min(panels / (TASKS_PER_THREAD * threads()))
            .max(1)
            .next_multiple_of(together)
    }
}

impl Part {
    fn panel(&self, p: usize) -> &[u8] {
        &self.packed[p * self.panel_bytes..][..self.panel_bytes]
    }

    /// Writes the products of rows `range` with one panel, or with two on a unit for bf16.
    fn multiply(&self, isa: Isa, panels: [Option<(usize, Columns<'_>)>; 2], rows: Rows<'_>, range: Range<usize>) {
        if bf16::applies(isa, self.format) {
            let panels = panels.map(|panel| panel.map(|(p, out)| bf16::Panel { packed: self.panel(p), out }));
            return bf16::multiply(isa, panels, rows.cols, rows.rounded, range);
        }
        for (p, out) in panels.into_iter().flatten() {
            let panel = self.panel(p);
            let on_tiles = range.start + tiled::rows(isa, self.format, range.len());
            if on_tiles > range.start {
                tiled::multiply(isa, self.format, panel, rows, range.start..on_tiles, out);
            }
            if range.end > on_tiles {
                panel::multiply(isa, self.format, panel, rows, on_tiles..range.end, out);
            }
        }
    }

    /// Where the products with panel `p` go.
    fn columns(&self, p: usize) -> (usize, usize) {
        (self.first_row + p * PANEL, PANEL.min(self.rows - p * PANEL))
    }
}

/// Writes the products of rows `range` with the panels of a run.
fn multiply_run<'a>(
    isa: Isa,
    products: impl Iterator<Item = (&'a Part, usize, Columns<'a>)>,
    rows: Rows<'_>,
    range: &Range<usize>,
) {
    let mut products = products.peekable();
    while let Some((part, p, out)) = products.next() {
        let second = products.next_if(|(next, ..)| std::ptr::eq(*next, part));
        part.multiply(isa, [Some((p, out)), second.map(|(_, p, out)| (p, out))], rows, range.clone());
    }
}

/// Memory for the left operand of a product.
#[derive(Default)]
struct Left {
    quantised: Activations,
    rounded: Rounded,
}

impl Left {
    /// Prepares `x: [rows, cols]` for products with weights of some formats.
    fn prepare<'a>(
        &'a mut self,
        isa: Isa,
        x: &'a [f32],
        rows: usize,
        cols: usize,
        mut formats: impl Iterator<Item = Format> + Clone,
    ) -> Rows<'a> {
        if formats.clone().any(|format| bf16::applies(isa, format)) {
            self.rounded.round(isa, x, rows, cols);
        }
        if formats.any(|format| !format.is_dense() && !bf16::applies(isa, format)) {
            self.quantised.quantise(isa, x, rows, cols);
        }
        Rows { x, quantised: &self.quantised, rounded: &self.rounded, cols }
    }
}
