//! The few operations worth writing by hand, each with a reference that anyone can read.
//!
//! One folder a kernel: its contract in `mod.rs`, plain loops in `reference.rs` (normative), and the ISAs that are
//! chosen at run time by what the processor can do ([`cpu::Isa`]). [`ops`] puts them behind candle's `CustomOp`.
//!
//! Two promises hold for every kernel on the CPU:
//! * all ISAs give the same bits as the reference (integer sums are exact, `f32` sums are fused multiply-adds in one
//!   fixed order);
//! * a row's result does not depend on the other rows of the call.
//!
//! Tensor legend for the whole project: B sequences, T tokens per sequence, N packed tokens, H hidden width, A heads,
//! K key/value heads, D head dim, F feed-forward width, V vocabulary, L layers, P pages, S slots per page.
//!
//! Not here: weight names, layers, files (`models`); who runs when (`scheduler`, `engine`).

pub mod activation;
pub mod attention;
pub mod cpu;
#[cfg(any(feature = "cuda", all(test, target_os = "linux", feature = "candle")))]
pub mod cuda;
pub mod embedding;
#[cfg(feature = "candle")]
pub mod epilogue;
pub mod limits;
pub mod math;
pub mod matmul;
mod matrix_unit;
pub mod memory;
pub mod norm;
#[cfg(feature = "candle")]
pub mod ops;
mod output;
pub mod pool;
pub mod rope;
pub mod sample;
mod simd;
#[cfg(feature = "candle")]
pub mod weight;
