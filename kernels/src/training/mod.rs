//! What training needs beyond inference: dense products with any strides, and operations with their gradients.
//!
//! # Contract
//! Every operation has a forward pass and a backward pass that takes the inputs of the forward pass and the gradient of its
//! output. All tensors are `f32`. Unlike the kernels of inference, these do not promise the same bits on every instruction
//! set; for a given processor and number of threads they are deterministic.
//!
//! # Numerics
//! `f32` sums, and `f32` factors but for [`HalfMatrix`]; gradients are checked against finite differences here and against PyTorch in `portable`.

pub mod attention;
mod half;
mod product;
mod rows;

pub use half::HalfMatrix;
pub use product::{View, ViewMut, multiply, multiply_serial};
pub use rows::{
    add, log_prob_gradient, log_sum_exp, norm_heads, norm_heads_backward, rms_norm, rms_norm_backward, swiglu,
    swiglu_backward,
};
