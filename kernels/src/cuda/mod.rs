//! The kernels on NVIDIA cards, compute capability 8.0 and later.
//!
//! A kernel's `.cu` file lies beside its reference and is compiled to PTX by `build.rs`; the driver makes machine code of
//! it when it is first used. [`launch`] and [`plan`] say what is launched and are tested on the host, where the same
//! sources run as C++ ([`emulated`]); [`device`] and [`tensors`] hand it to a card. Between kernels values are `f32`; what
//! goes into a product of dense weights is bf16.
//!
//! Nothing here has run on a card yet.

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
pub use quantised::{QuantisedProducts, quantised_products};
