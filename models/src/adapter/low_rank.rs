//! An adapter in memory: low-rank changes of projections.

use std::collections::BTreeMap;

use crate::error::{ModelError, Result};
use crate::spec::DecoderSpec;

/// Ranks above this are refused: such an adapter costs more than a model of its own.
pub const MAX_RANK: usize = 512;

/// A linear layer of a decoder block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Projection {
    Query,
    Key,
    Value,
    Output,
    Gate,
    Up,
    Down,
}

impl Projection {
    /// All of a block, in the order in which it computes them.
    pub const ALL: [Projection; 7] = [
        Projection::Query,
        Projection::Key,
        Projection::Value,
        Projection::Output,
        Projection::Gate,
        Projection::Up,
        Projection::Down,
    ];

    /// What Hugging Face checkpoints call it: `q_proj`.
    pub fn name(self) -> &'static str {
        match self {
            Projection::Query => "q_proj",
            Projection::Key => "k_proj",
            Projection::Value => "v_proj",
            Projection::Output => "o_proj",
            Projection::Gate => "gate_proj",
            Projection::Up => "up_proj",
            Projection::Down => "down_proj",
        }
    }

    /// The part of a block that it belongs to.
    pub(super) fn part(self) -> &'static str {
        match self {
            Projection::Query | Projection::Key | Projection::Value | Projection::Output => "self_attn",
            Projection::Gate | Projection::Up | Projection::Down => "mlp",
        }
    }

    /// Its name in the checkpoint, in this layer: `model.layers.3.self_attn.q_proj`.
    pub fn in_layer(self, layer: usize) -> String {
        format!("model.layers.{layer}.{}.{}", self.part(), self.name())
    }

    /// Whether it has a bias.
    pub fn has_bias(self, spec: &DecoderSpec) -> bool {
        match self {
            Projection::Query | Projection::Key | Projection::Value => spec.qkv_bias,
            Projection::Output => spec.output_bias,
            Projection::Gate | Projection::Up => spec.gate_up_bias,
            Projection::Down => spec.down_bias,
        }
    }

    /// Whether the checkpoint has its rows in the interleaved order of rotated pairs ([`crate::interleaved_row`]).
    pub fn is_interleaved(self, spec: &DecoderSpec) -> bool {
        spec.rope.interleaved && matches!(self, Projection::Query | Projection::Key)
    }

    /// The projection of this name.
    pub fn named(name: &str) -> Option<Projection> {
        Projection::ALL.into_iter().find(|projection| projection.name() == name)
    }

    /// Rows (outputs) and columns (inputs) of its matrix.
    pub fn shape(self, spec: &DecoderSpec) -> (usize, usize) {
        let (hidden, ffn, heads) = (spec.hidden, spec.ffn, spec.heads);
        match self {
            Projection::Query => (heads.query_width(), hidden),
            Projection::Key | Projection::Value => (heads.key_width(), hidden),
            Projection::Output => (hidden, heads.query_width()),
            Projection::Gate | Projection::Up => (ffn, hidden),
            Projection::Down => (hidden, ffn),
        }
    }
}

/// The change of one projection.
#[derive(Debug, Clone, PartialEq)]
pub struct LowRank {
    /// r
    pub rank: usize,
    /// s
    pub scale: f32,
    /// `[r, in]`
    pub a: Vec<f32>,
    /// `[out, r]`
    pub b: Vec<f32>,
}

/// An adapter for one base model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adapter {
    /// By layer and projection.
    pub modules: BTreeMap<(usize, Projection), LowRank>,
}

impl Adapter {
    /// Compares it with a base model.
    ///
    /// # Errors
    /// Names the first module that the base lacks, whose matrices have another shape, or whose rank is above [`MAX_RANK`].
    pub fn check(&self, spec: &DecoderSpec) -> Result<()> {
        let misfit = |reason: String| Err(ModelError::AdapterMisfit { reason });
        for ((layer, projection), module) in &self.modules {
            let (rows, cols) = projection.shape(spec);
            let (name, rank) = (module_name(*layer, *projection), module.rank);
            let is_expert = spec.routing.is_some() && projection.part() == "mlp";
            if is_expert {
                return Err(ModelError::AdapterUnsupported { what: format!("`{name}` of a mixture of experts") });
            }
            if *layer >= spec.layers {
                return misfit(format!("it changes `{name}`, the model has {} layers", spec.layers));
            }
            if !(1..=MAX_RANK).contains(&rank) {
                return Err(ModelError::AdapterUnsupported {
                    what: format!("rank {rank} of `{name}` (at most {MAX_RANK})"),
                });
            }
            let (outs, ins) = (module.b.len() / rank, module.a.len() / rank);
            if (outs, ins) != (rows, cols) || module.a.len() != rank * ins || module.b.len() != rank * outs {
                return misfit(format!("it is made for `{name}` of {outs} x {ins}, the model's is {rows} x {cols}"));
            }
        }
        Ok(())
    }

    /// A digest of everything that it computes; the same for every file format.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for ((layer, projection), module) in &self.modules {
            hasher.update(format!("{layer} {projection:?} {} {}", module.rank, module.scale).as_bytes());
            for values in [&module.a, &module.b] {
                hasher.update(&(values.len() as u64).to_le_bytes());
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                hasher.update(&bytes);
            }
        }
        *hasher.finalize().as_bytes()
    }
}

/// One of the two matrices of a change, by rows.
pub(super) struct Factor {
    pub rows: usize,
    pub cols: usize,
    pub values: Vec<f32>,
}

/// What Hugging Face checkpoints call a projection of a layer.
pub(super) fn module_name(layer: usize, projection: Projection) -> String {
    format!("model.layers.{layer}.{}.{}", projection.part(), projection.name())
}
