//! The networks of `models` on plain candle operations: any device that candle has, and gradients.
//!
//! [`Portable`] is a backend of the engine beside the kernels, with paged KV caches and weights in the formats of their files.
//!
//! [`Network`] runs whole sequences without a KV cache, for training and scoring; it reads the same files as
//! [`models::Decoder`] and takes a [`Lora`] whose matrices are candle variables. Everywhere its operations can be compositions
//! of candle's own, differentiated by candle ([`Arithmetic::Plain`]); on the processor blocks and their gradients are fused
//! instead ([`Arithmetic::Fused`], by `kernels::training`), several times faster. Tests hold each against the other.
//!
//! Not here: optimiser, data, checkpoints (`train`); scheduling and sampling (`engine`).

mod backend;
mod decoder;
mod encoder;
mod fused;
mod gradient;
mod layer;
mod loader;
mod lora;
mod matrix;
mod network;
mod pages;
mod plain;
mod quantised;
mod score;
mod values;

pub use backend::Portable;
pub use gradient::Targets;
pub use kernels::training::attention::Sequence;
pub use lora::{Lora, LoraLayer, LoraPair, LoraSettings, Part};
pub use network::{Arithmetic, Network};
pub use score::Scored;

/// # Errors
/// For what the differentiable network does not have.
fn refuse_for_training(spec: &models::DecoderSpec) -> models::Result<()> {
    match spec.post_norms {
        true => Err(models::ModelError::Unsupported { what: format!("training of `{}`", spec.architecture) }),
        false => refuse_experts(spec),
    }
}

/// # Errors
/// For a mixture of experts: neither network here has them.
fn refuse_experts(spec: &models::DecoderSpec) -> models::Result<()> {
    match spec.routing {
        Some(_) => Err(models::ModelError::Unsupported { what: "a mixture of experts on the portable backend".into() }),
        None => Ok(()),
    }
}
