//! The CUDA kernels, for compute capability 8.0 and later.
//!
//! A kernel's `.cu` file is beside its reference and compiled to PTX by `build.rs`; the driver compiles it to machine code on
//! first use. [`launch`] and [`plan`] describe launches and are tested on the host, where the same sources run as C++
//! ([`emulated`]); [`device`] and [`tensors`] execute them on a GPU. Values between kernels are `f32`; operands of
//! products are bf16.

mod blocks;
#[cfg(feature = "cuda")]
pub mod device;
#[cfg(all(test, target_os = "linux", feature = "candle"))]
mod emulated;
mod launch;
#[cfg(feature = "cuda")]
mod matrix;
mod plan;
#[cfg(feature = "cuda")]
mod quantised;
#[cfg(feature = "cuda")]
pub(crate) mod tensors;

#[cfg(feature = "cuda")]
pub use matrix::{DeviceMatrix, Kept};
#[cfg(feature = "cuda")]
pub use quantised::{QuantisedProducts, settle_quantised};
