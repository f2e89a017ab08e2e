//! What a language model takes of memory, and what its files say, without loading it.

use std::path::Path;

use crate::checkpoint;
use crate::error::Result;
use crate::manifest::{Choice, Kind};
use crate::shape::Shape;
use crate::source::{LoadOptions, Source};
use crate::spec::DecoderSpec;
use crate::weights::{Processor, Weights};

/// What a language model takes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Of the weights where they run: [`Footprint::cpu`], or [`Footprint::gpu`] after [`Footprint::on_gpu`].
    pub weights: WeightBytes,
    /// Of the weights on a CPU.
    pub cpu: WeightBytes,
    /// Of the weights on a GPU, where some formats take more.
    pub gpu: WeightBytes,
    /// In half precision.
    pub kv_bytes_per_token: u64,
    pub shape: Shape,
    /// Tokens that prompt and answer may have together.
    pub context: usize,
}

/// Bytes of packed weights, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightBytes {
    pub all: u64,
    /// Of the largest layer.
    pub layer: u64,
    /// Of the token table.
    pub table: u64,
    /// Of the output matrix; 0 if it is the token table.
    pub head: u64,
}

impl WeightBytes {
    fn new(spec: &DecoderSpec, weights: &Weights, processor: Processor) -> WeightBytes {
        WeightBytes {
            all: weights.packed_bytes(processor),
            layer: weights.largest_layer_bytes(spec.layers, processor),
            table: weights.tensor_bytes("model.embed_tokens.weight", processor),
            head: if spec.tied { 0 } else { weights.tensor_bytes("lm_head.weight", processor) },
        }
    }
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
        let table = (shape.vocab * shape.hidden) as u64;
        let head = if shape.tied { 0 } else { table };
        let layer = (shape.parameters() - table - head) / shape.layers as u64;
        let part = |parameters: u64| {
            (u128::from(weight_bytes) * u128::from(parameters) / u128::from(shape.parameters())) as u64
        };
        let weights = WeightBytes { all: weight_bytes, layer: part(layer), table: part(table), head: part(head) };
        Some(Footprint {
            weights,
            cpu: weights,
            gpu: weights,
            kv_bytes_per_token: shape.kv_bytes_per_token(),
            shape,
            context: choice.manifest.context_tokens,
        })
    }

    fn new(spec: &DecoderSpec, weights: &Weights) -> Footprint {
        let shape = Shape::from(spec);
        let [cpu, gpu] = [Processor::Cpu, Processor::Gpu].map(|of| WeightBytes::new(spec, weights, of));
        Footprint {
            weights: cpu,
            cpu,
            gpu,
            kv_bytes_per_token: shape.kv_bytes_per_token(),
            shape,
            context: spec.context,
        }
    }

    /// Bytes of the token table in the memory of an NVIDIA GPU, where the kernels keep it in 16 bits whatever the file has.
    pub fn dense_table_bytes(&self) -> u64 {
        (2 * self.shape.vocab * self.shape.hidden) as u64
    }

    /// The same model on a GPU.
    #[must_use]
    pub fn on_gpu(self) -> Footprint {
        Footprint { weights: self.gpu, ..self }
    }
}
