//! Training of low-rank adapters (LoRA) for the language model, by given answers or by rewards: data, gradients, optimiser,
//! checkpoints.
//!
//! The forward pass is that of [`portable`]; gradients are candle's. Blocks are differentiated one at a time from their kept
//! inputs, so memory is bounded and known beforehand ([`memory::Plan`]). A run is determined by its settings, its data, the
//! kind of processor and the number of threads; a killed run resumes from its last checkpoint and ends with the same adapter.

pub mod base;
pub mod batch;
pub mod curve;
pub mod error;
pub mod examples;
pub mod forms;
pub mod gradient;
pub mod lessons;
pub mod memory;
pub mod optimiser;
pub mod policy;
pub mod reinforce;
pub mod reward;
pub mod rollouts;
pub mod run;
pub mod sampler;
pub mod state;

pub use error::{Result, TrainError};
