//! The decoder of `models` on plain candle operations: any device that candle has, and gradients.
//!
//! [`Network`] runs whole sequences without a KV cache, for training and scoring; it reads the same files as
//! [`models::Decoder`] and takes a [`Lora`] whose matrices are candle variables. On the processor the operations are fused
//! ([`Arithmetic::Fused`]: `kernels::training` behind candle's `CustomOp` with backward passes); everywhere else they are
//! compositions of candle's own ([`Arithmetic::Plain`]), which also check the fused ones in tests.
//!
//! Not here: optimiser, data, checkpoints (`train`); paged KV caches and scheduling (`models`, `engine`).

mod fused;
mod lora;
mod network;
mod plain;
mod score;

pub use lora::{Lora, LoraLayer, LoraPair, LoraSettings, Part};
pub use network::{Arithmetic, Network};
pub use score::Scored;
