//! What a language model takes of memory, and what its files say, without loading it.

use std::path::Path;

use crate::checkpoint;
use crate::error::Result;
use crate::manifest::{Choice, Kind};
use crate::shape::Shape;
use crate::source::{LoadOptions, Source};
use crate::spec::DecoderSpec;
use crate::weights::Weights;

/// What a language model takes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Of the packed weights, about.
    pub weight_bytes: u64,
    /// Of the weights on a GPU, about: some formats take more there.
    pub gpu_weight_bytes: u64,
    /// In half precision.
    pub kv_bytes_per_token: u64,
    pub shape: Shape,
    /// Tokens that prompt and answer may have together.
    pub context: usize,
}

/// What a language model's files say, without loading them.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    pub footprint: Footprint,
    /// The architecture, as checkpoints call it.
    pub architecture: String,
    pub source: Source,
}

impl Inspection {
    /// Reads what a checkpoint says of itself.
    ///
    /// # Errors
    /// Any [`crate::ModelError`].
    pub fn of(path: &Path, options: LoadOptions) -> Result<Inspection> {
        let mut source = Source::new(path, options)?;
        let (spec, weights, described) = checkpoint::open_decoder(path, options)?;
        source.labels = described.labels(&weights)?;
        let footprint = Footprint::new(&spec, &weights);
        Ok(Inspection { footprint, architecture: spec.architecture, source })
    }
}

impl Footprint {
    /// Measures a checkpoint without loading it.
    ///
    /// # Errors
    /// Any [`crate::ModelError`].
    pub fn of(path: &Path, options: LoadOptions) -> Result<Footprint> {
        let (spec, weights, _) = checkpoint::open_decoder(path, options)?;
        Ok(Footprint::new(&spec, &weights))
    }

    /// What is known of a model before it is fetched; none if it is no language model.
    pub fn of_manifest(choice: Choice<'_>) -> Option<Footprint> {
        let Kind::Decoder { shape, .. } = choice.manifest.kind else { return None };
        // `memory_mib` is the weights and 4,096 tokens, and a tenth on top.
        let stated = (choice.variant.memory_mib << 20) * 10 / 11;
        let about = stated.saturating_sub(4096 * shape.kv_bytes_per_token());
        let weight_bytes = choice.variant.weight_bytes().unwrap_or(about);
        Some(Footprint {
            weight_bytes,
            gpu_weight_bytes: weight_bytes,
            kv_bytes_per_token: shape.kv_bytes_per_token(),
            shape,
            context: choice.manifest.context_tokens,
        })
    }

    fn new(spec: &DecoderSpec, weights: &Weights) -> Footprint {
        let shape = Shape::from(spec);
        Footprint {
            weight_bytes: weights.packed_bytes(),
            gpu_weight_bytes: weights.gpu_bytes(),
            kv_bytes_per_token: shape.kv_bytes_per_token(),
            shape,
            context: spec.context,
        }
    }

    /// The same model on a GPU.
    #[must_use]
    pub fn on_gpu(self) -> Footprint {
        Footprint { weight_bytes: self.gpu_weight_bytes, ..self }
    }
}
