//! The kernels as candle operations, so that networks are written once for all devices.
//!
//! Tensors are contiguous `f32` unless stated otherwise; positions, slots and page lists come from the host. An operation
//! that precedes a matrix product stores its output in the product's operand type `to`
//! ([`operand`](crate::weight::Weight::operand)): `f32` on the CPU. CUDA devices use `crate::cuda`; other devices return
//! candle's "no implementation".

mod activation;
mod attention;
mod norm;
mod product;
mod rows;
mod sampling;
mod storage;

pub use activation::{geglu, gelu, swiglu};
pub use attention::{paged_attention, ragged_attention, rotate_and_store};
pub use norm::{add_layer_norm, add_rms_norm, layer_norm, norm_heads, rms_norm};
pub use product::{add_low_rank, matmul, matmul_some};
pub use rows::{add, pick_rows, pool_unit, sparse_max, unit_rows};
pub use sampling::draw;
