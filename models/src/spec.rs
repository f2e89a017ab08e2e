//! Hyperparameters of the networks. What a file says and no network honours is an error that names it.

mod config;
mod gemma;
mod gguf;

use kernels::attention::Heads;

use crate::error::{ModelError, Result};
use crate::shape::Shape;

/// A decoder of the Llama family: RMSNorm, rotary positions, grouped queries, a gated feed-forward network.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "checkpoints differ in each of them independently")]
pub struct DecoderSpec {
    /// `llama`, `mistral`, `qwen2`, `qwen3`, `qwen3moe` or `gemma3`, as GGUF files call it.
    pub architecture: String,
    pub layers: usize,
    /// H
    pub hidden: usize,
    pub heads: Heads,
    /// F, of a feed-forward part without experts.
    pub ffn: usize,
    /// Feed-forward parts are mixtures of experts (Qwen3-MoE).
    pub routing: Option<Routing>,
    pub activation: Activation,
    /// V, padding included.
    pub vocab: usize,
    /// Embeddings are multiplied by this as the input of the first block (Gemma: √H).
    pub embedding_scale: f32,
    /// Positions that the checkpoint was made for, or that it reaches with YaRN.
    pub context: usize,
    pub norm_epsilon: f32,
    /// Norms multiply by this plus their weights: 1 for Gemma's safetensors.
    pub norm_offset: f32,
    /// The outputs of attention and feed-forward network are normalised before they are added (Gemma 3).
    pub post_norms: bool,
    pub rope: Rope,
    /// Attention scores are multiplied by this besides 1/√D.
    pub score_scale: f32,
    /// Some layers attend to the latest tokens only.
    pub window: Option<SlidingWindow>,
    /// Query, key and value projections have a bias (Qwen2, `attention_bias`).
    pub qkv_bias: bool,
    /// The output projection of attention has a bias (`attention_bias`).
    pub output_bias: bool,
    /// Gate and up projections have a bias (`mlp_bias`).
    pub gate_up_bias: bool,
    /// The down projection has a bias (`mlp_bias`).
    pub down_bias: bool,
    /// Query and key heads are normalised before the rotation (Qwen3).
    pub qk_norm: bool,
    /// The output matrix is the token embedding.
    pub tied: bool,
}

impl DecoderSpec {
    /// Number of weights, without norms and biases.
    pub fn parameters(&self) -> u64 {
        Shape::from(self).parameters()
    }

    /// Tokens that a token of this layer attends to, itself included, if they are limited.
    pub fn window_of(&self, layer: usize) -> Option<usize> {
        let window = self.window.as_ref()?;
        window.layers.get(layer).copied().unwrap_or(false).then_some(window.tokens)
    }

    /// True for the layers whose rotary embedding is that of the sliding window.
    pub fn has_window_rope(&self, layer: usize) -> bool {
        self.window_of(layer).is_some() && self.window_rope().is_some()
    }

    /// The rotary embedding of the layers with a sliding window, where it differs.
    pub fn window_rope(&self) -> Option<&Rope> {
        self.window.as_ref()?.rope.as_ref()
    }
}

/// The function of the gate in a feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Silu,
    /// The tanh approximation of GELU (Gemma).
    GeluTanh,
}

/// A mixture of experts in every layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routing {
    /// E
    pub experts: usize,
    /// Experts of one token.
    pub used: usize,
    /// F of one expert.
    pub ffn: usize,
    /// The shares of a token's experts add up to 1.
    pub normalised: bool,
}

impl Routing {
    /// # Errors
    /// If a token has no experts or more than there are.
    fn checked(self) -> Result<Routing> {
        match (1..=self.experts).contains(&self.used) {
            true => Ok(self),
            false => Err(ModelError::config(format!("{} of {} experts for a token", self.used, self.experts))),
        }
    }
}

/// Attention to the latest tokens only, in some layers.
#[derive(Debug, Clone, PartialEq)]
pub struct SlidingWindow {
    /// Tokens that a token attends to, itself included.
    pub tokens: usize,
    /// Which layers have it.
    pub layers: Vec<bool>,
    /// The rotary embedding of these layers, where it differs from the others' (Gemma 3).
    pub rope: Option<Rope>,
}

/// Rotary position embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    pub theta: f32,
    pub scaling: Scaling,
    /// The checkpoint's query and key rows are ordered for neighbouring pairs (GGUF files of architecture `llama`); they
    /// are put in half-split order when loaded.
    pub interleaved: bool,
}

/// How positions beyond those of training are reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Scaling {
    None,
    /// All frequencies divided by `factor` (position interpolation, arXiv 2306.15595).
    Linear {
        factor: f32,
    },
    /// YaRN (arXiv 2309.00071).
    Yarn(Yarn),
    /// Llama 3.1: low frequencies divided by `factor`, high ones kept, a smooth transition between them.
    Llama3 {
        factor: f32,
        /// A frequency is low if it makes fewer turns than this within `original` positions.
        low_turns: f32,
        /// A frequency is high if it makes more turns than this.
        high_turns: f32,
        /// Positions of training.
        original: usize,
    },
    /// Each frequency divided by its own number, `[D/2]` (`rope_freqs.weight` of GGUF files).
    Divided(Vec<f32>),
}

impl Scaling {
    /// The context of a checkpoint that states `positions`. With YaRN many state the positions of training.
    fn context(&self, positions: usize) -> usize {
        match self {
            Scaling::Yarn(yarn) => positions.max(yarn.context()),
            _ => positions,
        }
    }
}

/// Parameters of YaRN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yarn {
    pub factor: f32,
    /// Positions of training.
    pub original: usize,
    /// Cosines and sines are multiplied by this.
    pub attention_factor: f32,
    /// Frequencies that make more turns within `original` positions are kept (the paper's beta).
    pub fast_turns: f32,
    /// Frequencies that make fewer are divided by `factor` (the paper's alpha).
    pub slow_turns: f32,
    /// The bounds between which both are mixed are rounded to whole dimensions.
    pub truncate: bool,
}

impl Yarn {
    /// With the values that the paper recommends for Llama.
    pub fn new(factor: f32, original: usize) -> Yarn {
        let attention_factor = Yarn::attention_factor(factor, 1.0);
        Yarn { factor, original, attention_factor, fast_turns: 32.0, slow_turns: 1.0, truncate: true }
    }

    /// Positions that are reached.
    #[allow(clippy::cast_sign_loss, reason = "a cast of a negative number gives 0")]
    pub fn context(&self) -> usize {
        (self.original as f64 * f64::from(self.factor)).round() as usize
    }

    /// The paper's equation for the temperature of attention, with the logarithm multiplied by `scale`.
    fn attention_factor(factor: f32, scale: f32) -> f32 {
        if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 }
    }
}

/// An encoder of the BERT family.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderSpec {
    /// `bert` or `xlm-roberta`.
    pub architecture: String,
    pub layers: usize,
    /// H
    pub hidden: usize,
    pub heads: Heads,
    /// F
    pub ffn: usize,
    /// V
    pub vocab: usize,
    /// Rows of the position table.
    pub positions: usize,
    /// Position of the first token: 0 for BERT, the padding id + 1 for XLM-R.
    pub first_position: usize,
    pub token_types: usize,
    pub norm_epsilon: f32,
}

impl EncoderSpec {
    /// Tokens that a sequence may have, special ones included.
    pub fn context(&self) -> usize {
        self.positions - self.first_position
    }

    /// Number of weights, without norms and biases.
    pub fn parameters(&self) -> u64 {
        let layer = 4 * self.hidden * self.hidden + 2 * self.hidden * self.ffn;
        let embeddings = (self.vocab + self.positions + self.token_types) * self.hidden;
        (self.layers * layer + embeddings) as u64
    }
}

/// Either network.
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    Decoder(DecoderSpec),
    Encoder(EncoderSpec),
}

impl From<&DecoderSpec> for Shape {
    fn from(spec: &DecoderSpec) -> Shape {
        Shape {
            layers: spec.layers,
            hidden: spec.hidden,
            heads: spec.heads.queries,
            key_heads: spec.heads.keys,
            head_dim: spec.heads.dim,
            ffn: spec.routing.map_or(spec.ffn, |routing| routing.ffn),
            experts: spec.routing.map_or(0, |routing| routing.experts),
            vocab: spec.vocab,
            tied: spec.tied,
        }
    }
}

/// The heads of a network; there must be whole groups, and pairs of dimensions to rotate.
fn heads(queries: usize, keys: usize, dim: usize) -> Result<Heads> {
    if keys == 0 || !queries.is_multiple_of(keys) || !dim.is_multiple_of(2) || dim == 0 {
        return Err(ModelError::config(format!("{queries} query heads over {keys} key heads of {dim}")));
    }
    Ok(Heads { queries, keys, dim })
}

/// More layers than any published network has. Lists of layers are made before it is known whether the weights are there.
const MAX_LAYERS: usize = 4096;

/// A number of layers.
fn layers(layers: usize) -> Result<usize> {
    if layers > MAX_LAYERS {
        return Err(ModelError::config(format!("{layers} layers, where {MAX_LAYERS} are the most")));
    }
    Ok(layers)
}

/// A whole ratio.
fn ratio(whole: usize, parts: usize, what: &str) -> Result<usize> {
    match whole.checked_div(parts) {
        Some(part) if part * parts == whole => Ok(part),
        _ => Err(ModelError::config(format!("{what} is {whole} / {parts}"))),
    }
}
