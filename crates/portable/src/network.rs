//! The network: Llama's blocks, driven by a [`DecoderSpec`], over whole sequences.

use std::sync::Arc;

use candle_core::{Device, Tensor};
use kernels::rope::RopeTable;
use kernels::training::attention::Sequence;
use models::{DecoderSpec, ModelError, Result, Weights, rope_table};

use crate::fused::Surroundings;
use crate::layer::Layer;
use crate::lora::{Lora, LoraLayer};
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

impl Network {
    /// Loads the weights as `f32` for sequences of up to `positions` tokens.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape than the spec says, or the sequences are longer than the model's context.
    pub fn load(spec: &DecoderSpec, weights: &Weights, positions: usize, device: &Device) -> Result<Network> {
        crate::refuse_for_training(spec)?;
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
        let layer = |layer| Layer::load(spec, weights, layer, positions, device);
        Ok(Network {
            embedding: table("model.embed_tokens.weight")?,
            layers: (0..spec.layers).map(layer).collect::<Result<_>>()?,
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

    /// The same network with its logits divided by `temperature`: probabilities and gradients are those at which tokens are
    /// drawn.
    ///
    /// # Errors
    /// If the computation fails.
    pub fn with_temperature(self, temperature: f32) -> Result<Network> {
        // The output matrix is linear, so the weight of the norm before it takes the factor.
        let norm = (&self.norm / f64::from(temperature))?;
        Ok(Network { norm, ..self })
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
        Ok(self.layers[index].forward(hidden, sequences, lora, &self.spec, &self.angles)?)
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
            let reason =
                "sequences with branches, and the model has sliding windows that are shorter than sequences may be";
            return refused(reason.into());
        }
        let (heads, epsilon) = (self.spec.heads, self.spec.norm_epsilon);
        Ok(Surroundings { heads, epsilon, rope: &self.rope, sequences, rows })
    }

    /// The output matrix, `[V, H]`.
    pub(crate) fn output_matrix(&self) -> &Tensor {
        self.head.as_ref().unwrap_or(&self.embedding)
    }
}
