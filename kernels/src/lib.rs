//! Hand-written compute kernels for the CPU and CUDA, each with a readable reference implementation.
//!
//! One folder per kernel: its contract in `mod.rs`, plain loops in `reference.rs` (normative), and one variant per ISA,
//! selected at run time ([`cpu::Isa`]). [`ops`] exposes them as candle `CustomOp`s.
//!
//! Two guarantees hold for every kernel on the CPU:
//! * all ISAs give the same bits as the reference (integer sums are exact, `f32` sums are fused multiply-adds in one
//!   fixed order), except for products with bf16 weights on AMX and by AVX512-BF16 and attention in bf16 on AMX, which have
//!   references of their own ([`cpu::Numerics`]);
//! * a row's result does not depend on the other rows of the call.
//!
//! Tensor legend for the whole project: B sequences, T tokens per sequence, N packed tokens, H hidden width, A heads,
//! K key/value heads, D head dim, F feed-forward width, V vocabulary, L layers, P pages, S slots per page.
//!
//! Not here: weight names, layers, files (`models`); scheduling (`scheduler`, `engine`).

pub mod activation;
pub mod attention;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no unit of other processors is supported"))]
mod bf16_unit;
pub mod cpu;
#[cfg(any(feature = "cuda", all(test, target_os = "linux", feature = "candle")))]
pub mod cuda;
pub mod embedding;
#[cfg(feature = "candle")]
pub mod epilogue;
pub mod limits;
#[cfg(feature = "candle")]
pub mod low_rank;
pub mod math;
pub mod matmul;
#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code, reason = "its loops are tested everywhere"))]
mod matrix_unit;
pub mod memory;
pub mod norm;
#[cfg(feature = "candle")]
pub mod ops;
mod output;
mod per_isa;
pub mod pool;
pub mod rope;
pub mod sample;
mod simd;
#[cfg(feature = "training")]
pub mod training;
#[cfg(feature = "candle")]
pub mod weight;
