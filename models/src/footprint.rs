//! What a language model takes of memory, and what its files say, without loading it.

use std::path::Path;

use crate::checkpoint;
use crate::error::Result;
use crate::manifest::{Choice, Kind};
use crate::shape::Shape;
use crate::source::{LoadOptions, Source};
use crate::spec::DecoderSpec;
use crate::weights::{ComputedBy, Processor, Weights};

/// What a language model takes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Of the weights where they run: [`Footprint::cpu`], or [`Footprint::gpu`] after [`Footprint::on_gpu`].
    pub weights: WeightBytes,
    /// Of the weights on a CPU.
    pub cpu: WeightBytes,
    /// Of the weights on a GPU, where some formats take more, and those in `f32` less.
    pub gpu: WeightBytes,
    /// What computes.
    pub by: ComputedBy,
    /// By every processor, in the order of [`PROCESSORS`].
    of: [WeightBytes; PROCESSORS.len()],
    /// In half precision.
    pub kv_bytes_per_token: u64,
    pub shape: Shape,
    /// Tokens that prompt and answer may have together.
    pub context: usize,
}

const PROCESSORS: [Processor; 4] = [Processor::Cpu, Processor::Gpu, Processor::Portable, Processor::Metal];

/// Bytes of loaded weights, about.
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
    /// `to` bytes for every `from`.
    fn scaled(self, to: u64, from: u64) -> WeightBytes {
        let scale = |bytes: u64| bytes * to / from;
        let WeightBytes { all, layer, table, head } = self;
        WeightBytes { all: scale(all), layer: scale(layer), table: scale(table), head: scale(head) }
    }

    fn new(spec: &DecoderSpec, weights: &Weights, processor: Processor) -> WeightBytes {
        WeightBytes {
            all: weights.loaded_bytes(processor),
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
        let stored = WeightBytes { all: weight_bytes, layer: part(layer), table: part(table), head: part(head) };
        let bytes_each = match choice.variant.name.as_str() {
            "f32" => Some(4),
            "f16" | "bf16" => Some(2),
            _ => None,
        };
        let expanded = |to: u64| bytes_each.map_or(stored, |from| stored.scaled(to, from));
        let gpu = expanded(2);
        let dense_table = (2 * shape.vocab * shape.hidden) as u64;
        let gpu = WeightBytes {
            all: gpu.all + dense_table.saturating_sub(gpu.table),
            table: gpu.table.max(dense_table),
            ..gpu
        };
        let of = PROCESSORS.map(|processor| match processor {
            Processor::Cpu | Processor::Metal => stored,
            Processor::Gpu => gpu,
            Processor::Portable => expanded(4),
        });
        Some(Footprint::with(shape, choice.manifest.context_tokens, of))
    }

    fn new(spec: &DecoderSpec, weights: &Weights) -> Footprint {
        let of = PROCESSORS.map(|processor| WeightBytes::new(spec, weights, processor));
        Footprint::with(Shape::from(spec), spec.context, of)
    }

    /// By the kernels, on a CPU.
    fn with(shape: Shape, context: usize, of: [WeightBytes; PROCESSORS.len()]) -> Footprint {
        let [cpu, gpu, ..] = of;
        let kv_bytes_per_token = shape.kv_bytes_per_token();
        Footprint { weights: cpu, cpu, gpu, by: ComputedBy::Kernels, of, kv_bytes_per_token, shape, context }
    }

    /// The same model where something else computes, on a CPU.
    #[must_use]
    pub fn computed_by(self, by: ComputedBy) -> Footprint {
        let [cpu, gpu] = [false, true].map(|is_gpu| {
            let place = PROCESSORS.iter().position(|processor| *processor == by.processor(is_gpu));
            place.map_or(self.cpu, |place| self.of[place])
        });
        Footprint { weights: cpu, cpu, gpu, by, ..self }
    }

    /// The same model on a GPU.
    #[must_use]
    pub fn on_gpu(self) -> Footprint {
        Footprint { weights: self.gpu, ..self }
    }
}
