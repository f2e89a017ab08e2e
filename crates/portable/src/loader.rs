//! Tensors of a checkpoint onto a device.

use candle_core::{Device, Tensor};
use models::{Result, Weights, interleaved_row};

use crate::matrix::{Halves, Linear, Matrix};

/// Tensors of a checkpoint onto a device.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'a> {
    pub weights: &'a Weights,
    pub device: &'a Device,
}

impl Loader<'_> {
    pub fn vector(self, name: &str, len: usize) -> Result<Tensor> {
        Ok(Tensor::new(self.weights.values(name, &[len])?, self.device)?)
    }

    pub fn matrix(self, name: &str, rows: usize, cols: usize) -> Result<Matrix> {
        let (format, bytes) = self.weights.encoded(name, rows, cols)?;
        Ok(Matrix::load(format, (rows, cols), &bytes, Halves::on(self.device), self.device)?)
    }

    /// `{name}.weight: [rows, cols]` and, if `has_bias`, `{name}.bias: [rows]`. `interleaved`: the rows of every head of this
    /// size are in the interleaved order of rotated pairs; they are put in half-split order.
    pub fn linear(
        self,
        name: &str,
        (rows, cols): (usize, usize),
        has_bias: bool,
        interleaved: Option<usize>,
    ) -> Result<Linear> {
        let (format, bytes) = self.weights.encoded(&format!("{name}.weight"), rows, cols)?;
        let mut bias = match has_bias {
            true => Some(self.weights.values(&format!("{name}.bias"), &[rows])?),
            false => None,
        };
        let mut bytes = bytes;
        if let Some(dim) = interleaved {
            let row_bytes = bytes.len() / rows;
            let row = |row: usize| &bytes[interleaved_row(row, dim) * row_bytes..][..row_bytes];
            bytes = (0..rows).flat_map(row).copied().collect::<Vec<u8>>().into();
            bias = bias.map(|bias| (0..rows).map(|row| bias[interleaved_row(row, dim)]).collect());
        }
        let matrix = Matrix::load(format, (rows, cols), &bytes, Halves::on(self.device), self.device)?;
        let bias = bias.map(|bias| Tensor::new(bias, self.device)).transpose()?;
        Ok(Linear { matrix, bias })
    }
}
