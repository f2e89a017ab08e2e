//! The encoder network: BERT's blocks, driven by an [`EncoderSpec`]. MiniLM and XLM-R (BGE-M3) are specs of it.
//!
//! Sequences lie end to end without padding, so a row never depends on what it is batched with.

use std::ops::Range;

use candle_core::{Device, Tensor};
use kernels::attention::{Precision, Texts};
use kernels::epilogue::Epilogue;
use kernels::memory::retain_blocks;
use kernels::ops;
use kernels::weight::Weight;

use crate::error::{ModelError, Result};
use crate::linear::{Bias, Linear};
use crate::spec::EncoderSpec;
use crate::weights::Weights;

#[cfg(feature = "cuda")]
mod noise;

/// The weights of an encoder, ready to run.
#[derive(Debug)]
pub struct Encoder {
    spec: EncoderSpec,
    words: Weight,
    /// `[positions, H]`, the embedding of token type 0 added.
    positions: Tensor,
    norm: Norm,
    layers: Vec<Layer>,
    device: Device,
}

#[derive(Debug)]
struct Norm {
    weight: Tensor,
    bias: Tensor,
}

#[derive(Debug)]
struct Layer {
    /// Query, key and value projections on top of each other.
    qkv: Linear,
    output: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    ffn_norm: Norm,
}

/// Sequences on their way through the layers.
#[derive(Debug)]
pub struct Pass {
    /// `[N, H]`
    pub hidden: Tensor,
    pub texts: Texts,
    /// Halves of layers that are done: attention, then feed-forward.
    pub halves: usize,
}

impl Encoder {
    /// Loads the weights.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape than the spec says.
    pub fn load(spec: &EncoderSpec, weights: &Weights, device: &Device) -> Result<Encoder> {
        let hidden = spec.hidden;
        let mut positions = weights.values("embeddings.position_embeddings.weight", &[spec.positions, hidden])?;
        let types = weights.values("embeddings.token_type_embeddings.weight", &[spec.token_types, hidden])?;
        positions.chunks_exact_mut(hidden).flat_map(|row| row.iter_mut().zip(&types)).for_each(|(x, t)| *x += t);
        let layers = (0..spec.layers).map(|index| Layer::load(spec, weights, index, device)).collect::<Result<_>>()?;
        Ok(Encoder {
            words: weights.table("embeddings.word_embeddings.weight", spec.vocab, hidden, device)?,
            positions: Tensor::from_vec(positions, (spec.positions, hidden), device)?,
            norm: Norm::load(weights, "embeddings.LayerNorm", hidden, device)?,
            layers,
            device: device.clone(),
            spec: spec.clone(),
        })
    }

    /// What this checkpoint is.
    pub fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    /// Where the weights are.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Runs sequences of token ids (special tokens included) and returns their last hidden states `[N, H]`, end to end.
    ///
    /// # Errors
    /// If a sequence is empty or longer than the context, a token is outside the vocabulary, or the computation fails.
    pub fn forward(&self, sequences: &[Vec<u32>]) -> Result<Tensor> {
        let mut pass = self.begin(sequences)?;
        loop {
            if let Some(hidden) = self.advance(&mut pass)? {
                return Ok(hidden);
            }
        }
    }

    /// Starts the work of [`Encoder::forward`] as resumable steps, so that the engine can interleave other work.
    ///
    /// # Errors
    /// As [`Encoder::forward`].
    pub fn begin(&self, sequences: &[Vec<u32>]) -> Result<Pass> {
        retain_blocks();
        let hidden = self.norm.forward(&self.embed(sequences)?, &self.spec)?; // [N, H]
        Ok(Pass { hidden, texts: Texts::new(ranges(sequences)), halves: 0 })
    }

    /// Runs the next half of a layer; the last one returns the hidden states `[N, H]`.
    ///
    /// # Errors
    /// If the computation fails.
    pub fn advance(&self, pass: &mut Pass) -> Result<Option<Tensor>> {
        if let Some(layer) = self.layers.get(pass.halves / 2) {
            pass.hidden = match pass.halves % 2 {
                0 => layer.attend(&pass.hidden, &pass.texts, &self.spec)?, // [N, H]
                _ => layer.feed_forward(&pass.hidden, &self.spec)?,        // [N, H]
            };
            pass.halves += 1;
        }
        Ok((pass.halves >= 2 * self.layers.len()).then(|| pass.hidden.clone()))
    }

    fn embed(&self, sequences: &[Vec<u32>]) -> Result<Tensor> {
        let positions = self.spec.positions_of(sequences)?;
        let words = self.words.lookup(&sequences.concat(), &self.device)?; // [N, H]
        Ok(ops::add(&words, &ops::pick_rows(&self.positions, &positions)?)?)
    }
}

impl EncoderSpec {
    /// The position of every token of sequences, end to end. XLM-R's padding id, which `<pad>` in a text is, has the position
    /// before the first one and is not counted, as in transformers.
    ///
    /// # Errors
    /// If a sequence is empty or longer than the context, or a token is outside the vocabulary.
    pub fn positions_of(&self, sequences: &[Vec<u32>]) -> Result<Vec<u32>> {
        let mut positions = Vec::new();
        for sequence in sequences {
            if sequence.is_empty() || sequence.len() > self.context() {
                let reason = format!("a sequence of {} tokens for a context of {}", sequence.len(), self.context());
                return Err(ModelError::config(reason));
            }
            if let Some(token) = sequence.iter().find(|token| **token as usize >= self.vocab) {
                return Err(ModelError::config(format!("token {token} of a vocabulary of {}", self.vocab)));
            }
            let (padding, mut next) = (self.first_position.checked_sub(1), self.first_position);
            for token in sequence {
                if Some(*token as usize) == padding {
                    positions.push(*token);
                } else {
                    positions.push(next as u32);
                    next += 1;
                }
            }
        }
        Ok(positions)
    }
}

/// The rows of each sequence.
pub fn ranges(sequences: &[Vec<u32>]) -> Vec<Range<usize>> {
    let mut start = 0;
    let next = |sequence: &Vec<u32>| {
        start += sequence.len();
        start - sequence.len()..start
    };
    sequences.iter().map(next).collect()
}

impl Norm {
    fn load(weights: &Weights, name: &str, hidden: usize, device: &Device) -> Result<Norm> {
        let vector = |part: &str| -> Result<Tensor> {
            Ok(Tensor::new(weights.values(&format!("{name}.{part}"), &[hidden])?, device)?)
        };
        Ok(Norm { weight: vector("weight")?, bias: vector("bias")? })
    }

    fn forward(&self, x: &Tensor, spec: &EncoderSpec) -> Result<Tensor> {
        Ok(ops::layer_norm(x, &self.weight, &self.bias, spec.norm_epsilon)?)
    }

    /// The norm of `x + delta`.
    fn of_sum(&self, x: &Tensor, delta: &Tensor, spec: &EncoderSpec) -> Result<Tensor> {
        Ok(ops::add_layer_norm(x, delta, &self.weight, &self.bias, spec.norm_epsilon)?)
    }
}

impl Layer {
    fn load(spec: &EncoderSpec, weights: &Weights, index: usize, device: &Device) -> Result<Layer> {
        let (hidden, ffn) = (spec.hidden, spec.ffn);
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        let linear = |part: &str, rows, cols| Linear::load(weights, &name(part), rows, cols, Bias::Yes, device);
        let norm = |part: &str| Norm::load(weights, &name(part), hidden, device);
        let mut matrices = Vec::new();
        let mut bias = Vec::new();
        for part in ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}"))) {
            matrices.push(weights.weight(&format!("{part}.weight"), hidden, hidden, device)?);
            bias.extend(weights.values(&format!("{part}.bias"), &[hidden])?);
        }
        Ok(Layer {
            qkv: Linear::new(Weight::stack(matrices)?, Some(bias), device)?,
            output: linear("attention.output.dense", hidden, hidden)?,
            attention_norm: norm("attention.output.LayerNorm")?,
            up: linear("intermediate.dense", ffn, hidden)?,
            down: linear("output.dense", hidden, ffn)?,
            ffn_norm: norm("output.LayerNorm")?,
        })
    }

    /// `hidden: [N, H] -> [N, H]`.
    fn attend(&self, hidden: &Tensor, texts: &Texts, spec: &EncoderSpec) -> Result<Tensor> {
        let qkv = self.qkv.forward(hidden)?; // [N, 3·A·D]
        let precision = if self.qkv.weight().is_bf16() { Precision::Bf16Weights } else { Precision::Float };
        let attended = ops::ragged_attention(&qkv, spec.heads, precision, texts, self.output.operand())?; // [N, A·D]
        self.attention_norm.of_sum(hidden, &self.output.forward(&attended)?, spec)
    }

    /// `hidden: [N, H] -> [N, H]`.
    fn feed_forward(&self, hidden: &Tensor, spec: &EncoderSpec) -> Result<Tensor> {
        let x = self.up.forward_with(hidden, Epilogue::Gelu(self.down.operand()))?; // [N, F]
        self.ffn_norm.of_sum(hidden, &self.down.forward(&x)?, spec)
    }
}
