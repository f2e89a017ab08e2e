//! What is fused behind a matrix product, as tensor operations request it.

use candle_core::{DType, Tensor};

/// The function applied to a product before it is stored. Where the next product reads the result, it is stored in that
/// product's operand type.
#[derive(Debug, Clone, Copy)]
pub enum Epilogue<'a> {
    /// The product itself.
    None,
    /// GELU, the exact form.
    Gelu(DType),
    /// `silu(gate) · up` for stacked gate and up weights of equal height: `[N, rows / 2]`.
    SwiGlu(DType),
    /// The product plus a residual.
    Sum(&'a Tensor),
}
