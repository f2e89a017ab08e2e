//! Products with a frozen matrix in both directions, in bf16.

use crate::cpu::{Isa, active_isa};
use crate::matmul::{Format, Matrix, RowEpilogue};

/// A matrix `[N, K]` rounded to bf16, and its transpose, each packed for the kernels of inference. On a processor with a unit
/// for bf16 the other operand of a product is rounded as well.
#[derive(Debug)]
pub struct HalfMatrix {
    matrix: Matrix,
    transpose: Matrix,
    isa: Isa,
}

impl HalfMatrix {
    /// Rounds `values: [rows, cols]`.
    ///
    /// # Panics
    /// If the slice has another length.
    pub fn new(values: &[f32], rows: usize, cols: usize) -> HalfMatrix {
        assert_eq!(values.len(), rows * cols, "a matrix of {rows} x {cols}");
        let pack = |rows: usize, cols: usize, at: &dyn Fn(usize, usize) -> f32| {
            let values = (0..rows).flat_map(|row| (0..cols).map(move |col| at(row, col)));
            let bytes: Vec<u8> = values.flat_map(|value| half::bf16::from_f32(value).to_le_bytes()).collect();
            Matrix::pack(Format::Bf16, rows, cols, &bytes).expect("two bytes a value")
        };
        HalfMatrix {
            matrix: pack(rows, cols, &|row, col| values[row * cols + col]),
            transpose: pack(cols, rows, &|row, col| values[col * cols + row]),
            isa: active_isa(),
        }
    }

    /// N and K.
    pub fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.cols())
    }

    /// `x Wᵀ`, plus `onto` if given: `[M, K] -> [M, N]`.
    ///
    /// # Panics
    /// If a slice has the wrong size.
    pub fn product(&self, x: &[f32], onto: Option<&[f32]>) -> Vec<f32> {
        self.matrix.product(self.isa, x, None, onto.map_or(RowEpilogue::None, RowEpilogue::Sum))
    }

    /// `y W`: `[M, N] -> [M, K]`.
    ///
    /// # Panics
    /// If the slice has the wrong size.
    pub fn transposed_product(&self, y: &[f32]) -> Vec<f32> {
        self.transpose.product(self.isa, y, None, RowEpilogue::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::{View, ViewMut, multiply};

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|i| ((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    #[test]
    fn products_are_those_of_f32_but_for_rounding() {
        for (m, n, k) in [(3, 5, 4), (70, 33, 100), (1, 48, 64)] {
            let (weight, x, y) = (numbers(n * k, 1), numbers(m * k, 2), numbers(m * n, 3));
            let matrix = HalfMatrix::new(&weight, n, k);
            assert_eq!(matrix.shape(), (n, k));
            let (w, mut product, mut back) = (View::new(&weight, n, k), y.clone(), vec![0.0; m * k]);
            multiply(View::new(&x, m, k), w.transposed(), 1.0, ViewMut::new(&mut product, m, n), true);
            multiply(View::new(&y, m, n), w, 1.0, ViewMut::new(&mut back, m, k), false);
            let near = |got: &[f32], want: &[f32], terms: usize| {
                assert_eq!(got.len(), want.len());
                // Two factors below 1, each rounded by at most 2^-9.
                let bound = terms as f32 / 256.0;
                got.iter().zip(want).for_each(|(got, want)| assert!((got - want).abs() < bound, "{got}, want {want}"));
            };
            near(&matrix.product(&x, Some(&y)), &product, k);
            near(&matrix.transposed_product(&y), &back, n);
        }
    }
}
