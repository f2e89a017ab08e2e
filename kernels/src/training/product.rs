//! Dense products of strided matrices, by the `gemm` crate.

use gemm::Parallelism;

use crate::pool::{parallel_for, threads};

/// A matrix in a slice, with any strides.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    values: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// `[rows, cols]`, row by row.
    ///
    /// # Panics
    /// If the slice has another length.
    pub fn new(values: &'a [f32], rows: usize, cols: usize) -> View<'a> {
        assert_eq!(values.len(), rows * cols, "a matrix of {rows} x {cols}");
        View { values, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// Columns `from .. from + count`.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn columns(self, from: usize, count: usize) -> View<'a> {
        assert!(from + count <= self.cols, "columns {from}+{count} of {}", self.cols);
        let skipped = (from * self.col_stride).min(self.values.len());
        View { values: &self.values[skipped..], cols: count, ..self }
    }

    /// Rows `from .. from + count`.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn rows(self, from: usize, count: usize) -> View<'a> {
        self.transposed().columns(from, count).transposed()
    }

    /// Rows and columns exchanged; nothing is copied.
    #[must_use]
    pub fn transposed(self) -> View<'a> {
        View { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }
}

/// A matrix in a slice that is written to.
#[derive(Debug)]
pub struct ViewMut<'a> {
    values: &'a mut [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
}

impl<'a> ViewMut<'a> {
    /// `[rows, cols]`, row by row.
    ///
    /// # Panics
    /// If the slice has another length.
    pub fn new(values: &'a mut [f32], rows: usize, cols: usize) -> ViewMut<'a> {
        assert_eq!(values.len(), rows * cols, "a matrix of {rows} x {cols}");
        ViewMut { values, rows, cols, row_stride: cols }
    }

    /// Columns `from .. from + count`.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn columns(self, from: usize, count: usize) -> ViewMut<'a> {
        assert!(from + count <= self.cols, "columns {from}+{count} of {}", self.cols);
        let skipped = from.min(self.values.len());
        ViewMut { values: &mut self.values[skipped..], cols: count, ..self }
    }
}

/// Pointer to the output; tasks write disjoint blocks of it.
#[derive(Clone, Copy)]
struct Start(*mut f32);
// SAFETY: every task writes a block of its own.
unsafe impl Sync for Start {}

impl Start {
    fn at(self, offset: usize) -> *mut f32 {
        self.0.wrapping_add(offset)
    }
}

/// `out = scale · a · b`, or `out += scale · a · b` if `add`, on all threads.
///
/// # Panics
/// If the shapes do not fit.
pub fn multiply(a: View<'_>, b: View<'_>, scale: f32, mut out: ViewMut<'_>, add: bool) {
    /// Operations below which a task is not worth starting.
    const SMALL: usize = 1 << 20;
    let (m, n, k) = (out.rows, out.cols, a.cols);
    let by_rows = m >= n;
    let long = m.max(n);
    let tasks = (m * n * k / SMALL).clamp(1, threads() * 2).min(long.div_ceil(64)).max(1);
    let part = long.div_ceil(tasks).next_multiple_of(16);
    let start = check(a, b, &mut out);
    parallel_for(long.div_ceil(part), &|task| {
        let from = task * part;
        let count = part.min(long - from);
        let (block, a, b, m, n) = match by_rows {
            true => (start.at(from * out.row_stride), a.rows(from, count), b, count, n),
            false => (start.at(from), a, b.columns(from, count), m, count),
        };
        // SAFETY: `check` compared the shapes with the slices; blocks of different tasks do not overlap.
        unsafe { product(m, n, k, a, b, scale, block, out.row_stride, add) };
    });
}

/// [`multiply`] on the calling thread alone.
///
/// # Panics
/// As [`multiply`].
pub fn multiply_serial(a: View<'_>, b: View<'_>, scale: f32, mut out: ViewMut<'_>, add: bool) {
    let start = check(a, b, &mut out);
    // SAFETY: `check` compared the shapes with the slices.
    unsafe { product(out.rows, out.cols, a.cols, a, b, scale, start.0, out.row_stride, add) };
}

/// Compares shapes and slices.
fn check(a: View<'_>, b: View<'_>, out: &mut ViewMut<'_>) -> Start {
    assert!(
        a.rows == out.rows && b.cols == out.cols && a.cols == b.rows,
        "{} x {} by {} x {} into {} x {}",
        a.rows,
        a.cols,
        b.rows,
        b.cols,
        out.rows,
        out.cols
    );
    let needed = |rows: usize, cols: usize, row_stride: usize, col_stride: usize| {
        if rows == 0 || cols == 0 { 0 } else { (rows - 1) * row_stride + (cols - 1) * col_stride + 1 }
    };
    assert!(needed(a.rows, a.cols, a.row_stride, a.col_stride) <= a.values.len());
    assert!(needed(b.rows, b.cols, b.row_stride, b.col_stride) <= b.values.len());
    assert!(needed(out.rows, out.cols, out.row_stride, 1) <= out.values.len());
    Start(out.values.as_mut_ptr())
}

/// # Safety
/// `a` is `[m, k]`, `b` is `[k, n]`, both within their slices; `out` points to `m` rows of `n` values.
#[allow(clippy::too_many_arguments)]
unsafe fn product(
    m: usize,
    n: usize,
    k: usize,
    a: View<'_>,
    b: View<'_>,
    scale: f32,
    out: *mut f32,
    out_stride: usize,
    add: bool,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out,
            1,
            out_stride as isize,
            add,
            a.values.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.values.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|i| ((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    #[test]
    fn products_of_any_strides_are_those_of_plain_loops() {
        for (m, n, k) in [(3, 5, 4), (200, 70, 33), (17, 300, 129), (1, 1, 1)] {
            let (a, b) = (numbers(k * (m + 3), 1), numbers(n * k, 2));
            // a is a transposed view of some columns, b a transposed matrix.
            let a = View::new(&a, k, m + 3).columns(2, m).transposed();
            let b = View::new(&b, n, k).transposed();
            let before = numbers(m * (n + 2), 3);
            for add in [false, true] {
                let mut out = before.clone();
                multiply(a, b, 0.5, ViewMut::new(&mut out, m, n + 2).columns(1, n), add);
                for row in 0..m {
                    for col in 0..n + 2 {
                        let inside = (1..=n).contains(&col);
                        let at = |v: View<'_>, r: usize, c: usize| v.values[r * v.row_stride + c * v.col_stride];
                        let sum: f32 = (0..k).filter(|_| inside).map(|i| at(a, row, i) * at(b, i, col - 1)).sum();
                        let old = if add || !inside { before[row * (n + 2) + col] } else { 0.0 };
                        let (want, got) = (old + 0.5 * sum, out[row * (n + 2) + col]);
                        assert!((got - want).abs() < 1e-4, "{m} {n} {k} at {row}, {col}: {got}, want {want}");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "2 x 3 by 2 x 3")]
    fn shapes_that_do_not_fit_are_refused() {
        let values = [0.0; 6];
        let view = View::new(&values, 2, 3);
        multiply(view, view, 1.0, ViewMut::new(&mut [0.0; 6], 2, 3), false);
    }
}
