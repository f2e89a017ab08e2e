//! Stores products from registers to their output rows, through the fused epilogue.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::PANEL;
use crate::per_isa::per_isa;
use crate::pool::Disjoint;
use crate::simd::{self, SimdF32x16, prefetch_to_write};

/// The function applied to `p = x wᵀ + bias`, bit-identical to the functions of [`activation`](crate::activation).
#[derive(Debug, Clone, Copy)]
pub enum RowEpilogue<'a> {
    /// `p`: `[M, N]`.
    None,
    /// GELU, the exact form: `[M, N]`.
    Gelu,
    /// `silu(gate) · up` for a stack of two matrices of `N/2` rows, the gate first: `[M, N/2]`.
    SwiGlu,
    /// `y + p` with `y: [M, N]`, a residual.
    Sum(&'a [f32]),
}

/// The output `[M, N]`; every task writes some columns of some rows.
pub(super) struct Output<'a> {
    values: Disjoint<'a, MaybeUninit<f32>>,
    width: usize,
    /// `[N]`, added to every row; `[2 N]` for SwiGLU, those of the gates first.
    bias: Option<&'a [f32]>,
}

/// The columns of one panel (16, or fewer at the end of a matrix) with their epilogue.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    output: &'a Output<'a>,
    first: usize,
    count: usize,
    epilogue: RowEpilogue<'a>,
}

impl<'a> Output<'a> {
    /// `values: [M, width]`; the caller checks the length of the bias.
    pub fn new(values: &'a mut [MaybeUninit<f32>], width: usize, bias: Option<&'a [f32]>) -> Output<'a> {
        Output { values: Disjoint::new(values), width, bias }
    }

    /// N.
    pub fn width(&self) -> usize {
        self.width
    }

    /// # Safety
    /// While one task writes rows of these columns no other may write the same; for SwiGLU they were written before, with
    /// the products of their gates.
    pub unsafe fn columns(&'a self, first: usize, count: usize, epilogue: RowEpilogue<'a>) -> Columns<'a> {
        assert!(count <= PANEL && first + count <= self.width, "columns {first}+{count} of {}", self.width);
        Columns { output: self, first, count, epilogue }
    }
}

impl Columns<'_> {
    /// Requests the cache lines of `rows` before their products are computed. Stores complete in order, and without it those of
    /// one tile wait for memory one after the other.
    #[inline(always)]
    pub fn prefetch(mut self, rows: &Range<usize>) {
        for row in rows.clone() {
            prefetch_to_write(self.row(row).as_ptr());
        }
    }

    /// Applies the epilogue to the sums of `rows`, one register each, and stores them; there may be more registers than rows.
    #[inline(always)]
    pub fn write<L: SimdF32x16, const R: usize>(mut self, rows: &Range<usize>, sums: [L; R]) {
        if let (RowEpilogue::None, None, PANEL) = (self.epilogue, self.output.bias, self.count) {
            for (row, sum) in rows.clone().zip(sums) {
                store(sum, self.row(row));
            }
        } else {
            let mut products = [[0f32; PANEL]; R];
            for (products, sum) in products.iter_mut().zip(sums) {
                sum.store(products);
            }
            finish(L::ISA, self, rows.start, &products[..rows.len()]);
        }
    }

    /// Offset of the columns in a row.
    #[inline(always)]
    fn start(self, row: usize) -> usize {
        row * self.output.width + self.first
    }

    #[inline(always)]
    fn row(&mut self, row: usize) -> &mut [MaybeUninit<f32>] {
        // SAFETY: no other task writes these columns of this row; the creator of `Columns` guarantees it.
        unsafe { self.output.values.part(self.start(row), self.count) }
    }
}

per_isa! {
    /// Applies the epilogue to the products of some rows. A function of its own, so that it is not inlined into every loop over
    /// weights.
    fn finish(isa, columns: Columns<'_>, first_row: usize, products: &[[f32; PANEL]]) = finish_rows::<L>;
}

#[inline(always)]
fn finish_rows<L: SimdF32x16>(mut columns: Columns<'_>, first_row: usize, products: &[[f32; PANEL]]) {
    let Columns { output: Output { bias, width, .. }, first, count, epilogue } = columns;
    // The second half of a stack of gates and what they multiply is computed into the columns of the first.
    let first_bias = if matches!(epilogue, RowEpilogue::SwiGlu) { width + first } else { first };
    for (row, product) in (first_row..).zip(products) {
        // Nothing of this in closures, which would be compiled for no isa.
        let mut product = L::load(product);
        if let Some(bias) = bias {
            product = product.add(load(&bias[first_bias..first_bias + count]));
        }
        let start = columns.start(row);
        let out = columns.row(row);
        let result = match epilogue {
            RowEpilogue::None => product,
            RowEpilogue::Gelu => simd::gelu(product),
            // SAFETY: the gates were written before; the creator of `Columns` guarantees it.
            RowEpilogue::SwiGlu => simd::silu(load::<L>(unsafe { out.assume_init_ref() })).mul(product),
            RowEpilogue::Sum(y) => load::<L>(&y[start..start + count]).add(product),
        };
        store(result, out);
    }
}

/// As many of the sixteen values as there is room for.
#[inline(always)]
fn store<L: SimdF32x16>(x: L, out: &mut [MaybeUninit<f32>]) {
    let mut values = [0f32; PANEL];
    x.store(&mut values);
    if let Some(out) = out.first_chunk_mut::<PANEL>() {
        *out = values.map(MaybeUninit::new);
    } else {
        out.write_copy_of_slice(&values[..out.len()]);
    }
}

/// At most sixteen values; zeros in the lanes behind them.
#[inline(always)]
fn load<L: SimdF32x16>(x: &[f32]) -> L {
    if let Some(x) = x.first_chunk::<PANEL>() {
        return L::load(x);
    }
    let mut padded = [0f32; PANEL];
    padded[..x.len()].copy_from_slice(x);
    L::load(&padded)
}

/// The values as uninitialised memory, none of which is read before it is written.
pub(super) fn to_be_written(values: &mut [f32]) -> &mut [MaybeUninit<f32>] {
    // SAFETY: callers store initialised values only.
    unsafe { &mut *(std::ptr::from_mut(values) as *mut [MaybeUninit<f32>]) }
}
