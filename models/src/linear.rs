//! A weight matrix with an optional bias; its precision is nobody else's business.

use candle_core::{Device, Tensor};
use kernels::matmul::{Matrix, MatrixError};
use kernels::ops;

use crate::error::{ModelError, Result};
use crate::weights::Weights;

/// `y = x wᵀ + b`.
#[derive(Debug)]
pub struct Linear {
    weight: Matrix,
    bias: Option<Tensor>,
}

impl Linear {
    /// Puts a weight and a bias of as many values together.
    ///
    /// # Errors
    /// If the device refuses the bias.
    pub fn new(weight: Matrix, bias: Option<Vec<f32>>, device: &Device) -> Result<Linear> {
        let bias = bias.map(|bias| Tensor::new(bias, device)).transpose()?;
        Ok(Linear { weight, bias })
    }

    /// Loads `{name}.weight: [rows, cols]` and, if `with_bias`, `{name}.bias: [rows]`.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape.
    pub fn load(
        weights: &Weights,
        name: &str,
        rows: usize,
        cols: usize,
        with_bias: Bias,
        device: &Device,
    ) -> Result<Linear> {
        let weight = weights.matrix(&format!("{name}.weight"), rows, cols)?;
        let bias = match with_bias {
            Bias::No => None,
            Bias::Yes => Some(weights.values(&format!("{name}.bias"), &[rows])?),
        };
        Linear::new(weight, bias, device)
    }

    /// `[N, cols] -> [N, rows]`.
    ///
    /// # Errors
    /// If the width of `x` is another.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = ops::matmul(x, &self.weight)?;
        Ok(match &self.bias {
            Some(bias) => y.broadcast_add(bias)?,
            None => y,
        })
    }

    /// The packed weights.
    pub fn weight(&self) -> &Matrix {
        &self.weight
    }
}

/// Whether a projection has a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    No,
    Yes,
}

/// Stacks projections of one input, so that one product serves them all.
pub(crate) fn stack(name: &str, matrices: impl IntoIterator<Item = Matrix>) -> Result<Matrix> {
    Matrix::stack(matrices).map_err(|source: MatrixError| ModelError::Matrix { name: name.to_owned(), source })
}
