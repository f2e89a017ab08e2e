//! A weight matrix with an optional bias; its precision is encapsulated.

use candle_core::{DType, Device, Tensor};
use kernels::epilogue::Epilogue;
use kernels::weight::Weight;

use crate::error::Result;
use crate::weights::Weights;

/// `y = x wᵀ + b`.
#[derive(Debug)]
pub struct Linear {
    weight: Weight,
    bias: Option<Tensor>,
}

impl Linear {
    /// Puts a weight and a bias of as many values together.
    ///
    /// # Errors
    /// If the device refuses the bias.
    pub fn new(weight: Weight, bias: Option<Vec<f32>>, device: &Device) -> Result<Linear> {
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
        let weight = weights.weight(&format!("{name}.weight"), rows, cols, device)?;
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
        self.forward_with(x, Epilogue::None)
    }

    /// `[N, cols] -> [N, rows]`, then the epilogue.
    ///
    /// # Errors
    /// As [`Linear::forward`].
    pub fn forward_with(&self, x: &Tensor, epilogue: Epilogue<'_>) -> Result<Tensor> {
        Ok(self.weight.product(x, self.bias.as_ref(), epilogue)?)
    }

    /// The type in which it takes its input.
    pub(crate) fn operand(&self) -> DType {
        self.weight.operand()
    }

    /// The weights.
    pub fn weight(&self) -> &Weight {
        &self.weight
    }
}

/// Whether a projection has a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    No,
    Yes,
}
