//! The memory of a run, computed before it starts.

use models::DecoderSpec;
use models::adapter::{Adapter, Projection};
use portable::Lora;

/// The trainable weights of an adapter.
pub fn parameters(spec: &DecoderSpec, rank: usize, targets: &[Projection]) -> usize {
    let shapes = Projection::ALL.iter().filter(|projection| targets.contains(projection));
    let sides = shapes.map(|projection| projection.shape(spec)).map(|(rows, cols)| rows + cols);
    spec.layers * rank * sides.sum::<usize>()
}

/// Bytes of an adapter that is not trained, such as the reference of a divergence.
pub fn frozen_bytes(lora: &Lora) -> usize {
    lora.variables().iter().map(|variable| variable.elem_count() * size_of::<f32>()).sum()
}

/// Bytes of an adapter as it was read.
pub fn adapter_bytes(adapter: &Adapter) -> usize {
    adapter.modules.values().map(|module| (module.a.len() + module.b.len()) * size_of::<f32>()).sum()
}

/// Bytes of the parts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The frozen weights.
    pub base: usize,
    /// Adapter, moments, gradients.
    pub adapter: usize,
    /// The part that is always needed: the inputs of all blocks, one block in its backward pass, logits.
    pub pass: usize,
    /// The activations of each block.
    pub block: usize,
    /// Blocks that keep their activations for the backward pass.
    pub kept: usize,
    pub layers: usize,
    /// Besides: the engine that samples replies, the adapter to start from, the adapter of a divergence.
    pub other: usize,
}

impl Plan {
    /// For passes of `tokens` tokens within `limit` bytes; `None` if more is needed even without stored activations.
    pub fn new(spec: &DecoderSpec, parameters: usize, tokens: usize, limit: usize) -> Option<Plan> {
        const FLOAT: usize = size_of::<f32>();
        /// Rows of logits that exist together, with their gradients (`portable::score`).
        const LOGIT_ROWS: usize = 128;
        let (hidden, ffn, heads) = (spec.hidden, spec.ffn, spec.heads);
        let (queries, keys) = (heads.query_width(), heads.key_width());
        let tables = spec.vocab * hidden * if spec.tied { 1 } else { 2 };
        let matrices = hidden * (2 * queries + 2 * keys + 3 * ffn);
        // Stored by `portable` per block: its input, query, key and value, attention, the sum after it, gate and up.
        let activations = 2 * hidden + 2 * queries + 2 * keys + 2 * ffn;
        let base = FLOAT * (tables + spec.layers * matrices);
        let adapter = FLOAT * 5 * parameters;
        let block = FLOAT * tokens * activations;
        // Inputs of all blocks, one block with its gradients, and logits.
        let pass = FLOAT * tokens * hidden * (spec.layers + 4) + 3 * block + FLOAT * LOGIT_ROWS * spec.vocab;
        let kept = limit.checked_sub(base + adapter + pass)? / block.max(1);
        Some(Plan { base, adapter, pass, block, kept: kept.min(spec.layers), layers: spec.layers, other: 0 })
    }

    /// The bytes that passes of `tokens` tokens need at least: without stored activations.
    pub fn least(spec: &DecoderSpec, parameters: usize, tokens: usize) -> usize {
        Plan::new(spec, parameters, tokens, usize::MAX).map_or(usize::MAX, |plan| Plan { kept: 0, ..plan }.bytes())
    }

    /// The total.
    pub fn bytes(&self) -> usize {
        self.base + self.adapter + self.pass + self.kept * self.block + self.other
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: usize| bytes >> 20;
        write!(
            f,
            "{} MiB: weights {}, adapter and optimiser {}, passes {}, activations of {} of {} blocks {}",
            mib(self.bytes()),
            mib(self.base),
            mib(self.adapter),
            mib(self.pass),
            self.kept,
            self.layers,
            mib(self.kept * self.block)
        )?;
        if self.other > 0 { write!(f, ", sampling of replies and other adapters {}", mib(self.other)) } else { Ok(()) }
    }
}
