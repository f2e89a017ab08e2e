//! The network: Llama's blocks, driven by a [`DecoderSpec`], over whole sequences.

use std::sync::Arc;

use candle_core::{Device, Tensor};
use kernels::attention::Heads;
use kernels::rope::RopeTable;
use kernels::training::HalfMatrix;
use kernels::training::attention::Sequence;
use models::{DecoderSpec, ModelError, Result, Weights, interleaved_row, rope_table};

use crate::fused::Surroundings;
use crate::lora::{Lora, LoraLayer, LoraPair};
use crate::{fused, plain};

/// How the operations are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// Fused operations and gradients on the processor, in `f32`.
    Fused,
    /// As [`Arithmetic::Fused`], with products of the blocks' weights in bf16: weights, activations and their gradients are
    /// rounded for them, sums are `f32`. Fast on processors with a unit for bf16.
    Half,
    /// Compositions of candle's operations, with its gradients.
    Plain,
}

/// A decoder with frozen weights.
#[derive(Debug)]
pub struct Network {
    pub(crate) spec: DecoderSpec,
    pub(crate) arithmetic: Arithmetic,
    device: Device,
    /// `[V, H]`
    pub(crate) embedding: Tensor,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Tensor,
    head: Option<Tensor>,
    rope: RopeTable,
    /// The same weights for the plain operations.
    angles: (Tensor, Tensor),
}

#[derive(Debug)]
pub(crate) struct Layer {
    pub attention_norm: Tensor,
    pub qkv: Frozen,
    /// Norms of the query and key heads, `[D]` each.
    pub qk_norm: Option<(Tensor, Tensor)>,
    pub window: Option<usize>,
    pub output: Frozen,
    pub ffn_norm: Tensor,
    pub gate_up: Frozen,
    pub down: Frozen,
}

/// A weight matrix `[out, in]` and its bias, without gradient.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub weight: FrozenWeight,
    pub bias: Option<Tensor>,
}

#[derive(Debug)]
pub(crate) enum FrozenWeight {
    Full(Tensor),
    Half(HalfMatrix),
}

impl Network {
    /// Loads the weights as `f32` for sequences of up to `positions` tokens.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape than the spec says, or the sequences are longer than the model's context.
    pub fn load(spec: &DecoderSpec, weights: &Weights, positions: usize, device: &Device) -> Result<Network> {
        if positions > spec.context {
            let reason = format!("sequences of {positions} tokens; its context is {}", spec.context);
            return Err(ModelError::Config { reason });
        }
        let vector = |name: &str| -> Result<Tensor> { Ok(Tensor::new(weights.values(name, &[spec.hidden])?, device)?) };
        let table = |name: &str| -> Result<Tensor> {
            let shape = (spec.vocab, spec.hidden);
            Ok(Tensor::from_vec(weights.values(name, &[spec.vocab, spec.hidden])?, shape, device)?)
        };
        let rope = rope_table(&spec.rope, spec.heads.dim, positions);
        Ok(Network {
            embedding: table("model.embed_tokens.weight")?,
            layers: (0..spec.layers).map(|layer| Layer::load(spec, weights, layer, device)).collect::<Result<_>>()?,
            norm: vector("model.norm.weight")?,
            head: (!spec.tied).then(|| table("lm_head.weight")).transpose()?,
            angles: plain::angles(&rope, spec.heads.dim, device)?,
            rope,
            arithmetic: if device.is_cpu() { Arithmetic::Fused } else { Arithmetic::Plain },
            device: device.clone(),
            spec: spec.clone(),
        })
    }

    /// The same network with its operations computed in the given way.
    ///
    /// # Errors
    /// For fused operations on a device that is not the processor, and for others than [`Arithmetic::Half`] once the weights
    /// are rounded.
    pub fn with_arithmetic(mut self, arithmetic: Arithmetic) -> Result<Network> {
        if arithmetic != Arithmetic::Plain && !self.device.is_cpu() {
            return Err(ModelError::Unsupported { what: "fused operations on this device".into() });
        }
        if self.arithmetic == Arithmetic::Half && arithmetic != Arithmetic::Half {
            return Err(ModelError::Unsupported {
                what: "f32 arithmetic with weights that were rounded to bf16".into(),
            });
        }
        if arithmetic == Arithmetic::Half {
            for layer in &mut self.layers {
                for frozen in [&mut layer.qkv, &mut layer.output, &mut layer.gate_up, &mut layer.down] {
                    frozen.round()?;
                }
            }
        }
        self.arithmetic = arithmetic;
        Ok(self)
    }

    /// How operations are computed.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// The spec of this checkpoint.
    pub fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of blocks.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Embeddings of tokens: `[N, H]`.
    ///
    /// # Errors
    /// If a token is outside the vocabulary.
    pub fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        if let Some(token) = tokens.iter().find(|token| **token as usize >= self.spec.vocab) {
            let reason = format!("token {token} of a vocabulary of {}", self.spec.vocab);
            return Err(ModelError::Config { reason });
        }
        Ok(self.embedding.index_select(&Tensor::new(tokens, &self.device)?, 0)?)
    }

    /// Block `index` by candle's operations, differentiable, on `hidden: [N, H]`, whose rows are the tokens of `sequences`,
    /// end to end.
    ///
    /// # Errors
    /// If a sequence is longer than the positions that were loaded, or the computation fails.
    pub fn block(
        &self,
        index: usize,
        hidden: &Tensor,
        sequences: &Arc<[Sequence]>,
        lora: Option<&LoraLayer>,
    ) -> Result<Tensor> {
        self.surroundings(hidden.dim(0)?, sequences)?;
        Ok(self.layers[index].forward(hidden, sequences, lora, self)?)
    }

    /// All blocks: `[N] -> [N, H]`, before the last norm; differentiable where the arithmetic is plain.
    ///
    /// # Errors
    /// As [`Network::block`] and [`Network::embed`].
    pub fn hidden(&self, tokens: &[u32], sequences: &Arc<[Sequence]>, lora: Option<&Lora>) -> Result<Tensor> {
        let around = self.surroundings(tokens.len(), sequences)?;
        let mut hidden = self.embed(tokens)?;
        let adapter = |index: usize| lora.map(|lora| &lora.layers[index]);
        if self.arithmetic == Arithmetic::Plain {
            for index in 0..self.layers.len() {
                hidden = self.block(index, &hidden, sequences, adapter(index))?;
            }
            return Ok(hidden);
        }
        let mut values = hidden.flatten_all()?.to_vec1::<f32>()?;
        for (index, layer) in self.layers.iter().enumerate() {
            (values, _) = fused::forward(layer, values, &around, adapter(index))?;
        }
        Ok(Tensor::from_vec(values, hidden.shape(), &self.device)?)
    }

    /// The parameters of a batch for the fused blocks.
    pub(crate) fn surroundings<'a>(&'a self, rows: usize, sequences: &'a [Sequence]) -> Result<Surroundings<'a>> {
        let refused = |reason: String| Err(ModelError::Config { reason });
        if let Some(longest) =
            sequences.iter().map(Sequence::positions).max().filter(|len| *len > self.rope.positions())
        {
            return refused(format!("a sequence of {longest} tokens; at most {} fit", self.rope.positions()));
        }
        let ends = sequences.iter().scan(0, |end, sequence| {
            let follows = sequence.rows.start == *end && !sequence.is_empty();
            *end = sequence.rows.end;
            Some(follows)
        });
        if !ends.into_iter().all(|follows| follows) || sequences.last().map_or(0, |last| last.rows.end) != rows {
            return refused(format!("sequences that do not lie end to end in {rows} rows"));
        }
        let branched = sequences.iter().any(|sequence| !sequence.branches.is_empty());
        if branched && self.layers.iter().any(|layer| layer.window.is_some()) {
            return refused("sequences with branches, and the model has sliding windows".into());
        }
        let (heads, epsilon) = (self.spec.heads, self.spec.norm_epsilon);
        Ok(Surroundings { heads, epsilon, rope: &self.rope, sequences, rows })
    }

    /// The output matrix, `[V, H]`.
    pub(crate) fn output_matrix(&self) -> &Tensor {
        self.head.as_ref().unwrap_or(&self.embedding)
    }
}

impl Frozen {
    /// Widths of its output and its input.
    pub fn shape(&self) -> candle_core::Result<(usize, usize)> {
        match &self.weight {
            FrozenWeight::Full(weight) => weight.dims2(),
            FrozenWeight::Half(matrix) => Ok(matrix.shape()),
        }
    }

    fn forward(&self, x: &Tensor, lora: Option<&LoraPair>) -> candle_core::Result<Tensor> {
        match &self.weight {
            FrozenWeight::Full(weight) => plain::project(x, weight, self.bias.as_ref(), lora),
            FrozenWeight::Half(_) => candle_core::bail!("candle's operations with weights that were rounded to bf16"),
        }
    }

    /// Rounds the weights to bf16.
    fn round(&mut self) -> candle_core::Result<()> {
        if let FrozenWeight::Full(weight) = &self.weight {
            let (rows, cols) = weight.dims2()?;
            let matrix = fused::with_values(weight, |weight| Ok(HalfMatrix::new(weight, rows, cols)))?;
            self.weight = FrozenWeight::Half(matrix);
        }
        Ok(())
    }
}

impl Layer {
    fn load(spec: &DecoderSpec, weights: &Weights, index: usize, device: &Device) -> Result<Layer> {
        let (hidden, ffn, heads) = (spec.hidden, spec.ffn, spec.heads);
        let name = |part: &str| format!("model.layers.{index}.{part}");
        let vector = |part: &str, len: usize| -> Result<Tensor> {
            Ok(Tensor::new(weights.values(&name(part), &[len])?, device)?)
        };
        // Projections with the same input are stacked on each other: (name, rows, rows that the rotation pairs).
        let stack = |parts: &[(&str, usize, bool)], cols: usize, with_bias: bool| -> Result<Frozen> {
            let (mut matrix, mut bias) = (Vec::new(), Vec::new());
            for (part, rows, rotated) in parts {
                let values = weights.values(&name(&format!("{part}.weight")), &[*rows, cols])?;
                let interleaved = spec.rope.interleaved && *rotated;
                let source = |row: usize| if interleaved { interleaved_row(row, heads.dim) } else { row };
                (0..*rows).for_each(|row| matrix.extend_from_slice(&values[source(row) * cols..][..cols]));
                if with_bias {
                    let values = weights.values(&name(&format!("{part}.bias")), &[*rows])?;
                    bias.extend((0..*rows).map(|row| values[source(row)]));
                }
            }
            let rows = matrix.len() / cols;
            Ok(Frozen {
                weight: FrozenWeight::Full(Tensor::from_vec(matrix, (rows, cols), device)?),
                bias: with_bias.then(|| Tensor::new(bias, device)).transpose()?,
            })
        };
        let (queries, keys) = (heads.query_width(), heads.key_width());
        let qkv =
            [("self_attn.q_proj", queries, true), ("self_attn.k_proj", keys, true), ("self_attn.v_proj", keys, false)];
        let qk_norm = match spec.qk_norm {
            true => {
                Some((vector("self_attn.q_norm.weight", heads.dim)?, vector("self_attn.k_norm.weight", heads.dim)?))
            }
            false => None,
        };
        Ok(Layer {
            attention_norm: vector("input_layernorm.weight", hidden)?,
            qkv: stack(&qkv, hidden, spec.qkv_bias)?,
            qk_norm,
            window: spec.window_of(index),
            output: stack(&[("self_attn.o_proj", hidden, false)], queries, spec.output_bias)?,
            ffn_norm: vector("post_attention_layernorm.weight", hidden)?,
            gate_up: stack(&[("mlp.gate_proj", ffn, false), ("mlp.up_proj", ffn, false)], hidden, spec.gate_up_bias)?,
            down: stack(&[("mlp.down_proj", hidden, false)], ffn, spec.down_bias)?,
        })
    }

    fn forward(
        &self,
        hidden: &Tensor,
        sequences: &Arc<[Sequence]>,
        lora: Option<&LoraLayer>,
        network: &Network,
    ) -> candle_core::Result<Tensor> {
        let pair = |pick: fn(&LoraLayer) -> Option<&LoraPair>| lora.and_then(pick);
        let (heads, epsilon) = (network.spec.heads, network.spec.norm_epsilon);
        let x = plain::rms_norm(hidden, &self.attention_norm, epsilon)?;
        let qkv = self.qkv.forward(&x, pair(|lora| lora.qkv.as_ref()))?;
        let qkv = self.norm_heads(qkv, heads, epsilon)?;
        let attended = plain::attention(&qkv, heads, &network.angles, sequences, self.window)?;
        let hidden = (hidden + self.output.forward(&attended, pair(|lora| lora.output.as_ref()))?)?;
        let x = plain::rms_norm(&hidden, &self.ffn_norm, epsilon)?;
        let x = plain::swiglu(&self.gate_up.forward(&x, pair(|lora| lora.gate_up.as_ref()))?)?;
        hidden + self.down.forward(&x, pair(|lora| lora.down.as_ref()))?
    }

    /// RMSNorm of every query and key head, where the architecture has it.
    fn norm_heads(&self, qkv: Tensor, heads: Heads, epsilon: f32) -> candle_core::Result<Tensor> {
        let Some((q_norm, k_norm)) = &self.qk_norm else { return Ok(qkv) };
        let (rows, queries, keys) = (qkv.dim(0)?, heads.query_width(), heads.key_width());
        let normed = |from: usize, width: usize, weight: &Tensor| {
            let part = qkv.narrow(1, from, width)?.contiguous()?.reshape((rows * width / heads.dim, heads.dim))?;
            plain::rms_norm(&part, weight, epsilon)?.reshape((rows, width))
        };
        let q = normed(0, queries, q_norm)?;
        let k = normed(queries, keys, k_norm)?;
        Tensor::cat(&[q, k, qkv.narrow(1, queries + keys, keys)?], 1)?.contiguous()
    }
}
