//! Hyperparameters of the networks, read from a `config.json` or from a GGUF file's metadata. What a file says and no network
//! honours is an error that names it.

use kernels::attention::Heads;
use serde_json::{Value, json};

use crate::error::{ModelError, Result};
use crate::fields::{Fields, switched_off};
use crate::gguf::Metadata;
use crate::shape::Shape;
use crate::weights::Weights;

/// A decoder of the Llama family: RMSNorm, rotary positions, grouped queries, SwiGLU.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "checkpoints differ in each of them independently")]
pub struct DecoderSpec {
    /// `llama`, `mistral`, `qwen2` or `qwen3`, as checkpoints call it.
    pub architecture: String,
    pub layers: usize,
    /// H
    pub hidden: usize,
    pub heads: Heads,
    /// F
    pub ffn: usize,
    /// V, padding included.
    pub vocab: usize,
    /// Positions that the checkpoint was made for.
    pub context: usize,
    pub norm_epsilon: f32,
    pub rope: Rope,
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
}

/// Attention to the latest tokens only, in some layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Tokens that a token attends to, itself included.
    pub tokens: usize,
    /// Which layers have it.
    pub layers: Vec<bool>,
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
    /// Position of the first token: 0 for BERT, 2 for XLM-R.
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

impl Spec {
    /// Reads a Hugging Face `config.json`.
    ///
    /// # Errors
    /// If the model type is not one of ours, a value is missing or impossible, or a field has no effect here.
    pub fn from_config(config: &Value) -> Result<Spec> {
        let fields = Fields::new(config);
        match fields.text("model_type")? {
            kind @ ("llama" | "mistral" | "qwen2" | "qwen3") => Ok(Spec::Decoder(decoder(kind, fields)?)),
            kind @ ("bert" | "xlm-roberta") => Ok(Spec::Encoder(encoder(kind, fields)?)),
            other => Err(ModelError::Unsupported { what: format!("model type `{other}`") }),
        }
    }

    /// Reads the metadata of a GGUF file; biases, tied embeddings and divisors of frequencies follow from its tensors.
    ///
    /// # Errors
    /// As [`Spec::from_config`].
    pub fn from_gguf(metadata: &Metadata, weights: &Weights) -> Result<Spec> {
        if let Some(kind) = metadata.optional_text("general.type")?.filter(|kind| *kind != "model") {
            return Err(ModelError::Unsupported { what: format!("a GGUF file of type `{kind}` as a model") });
        }
        let architecture = metadata.text("general.architecture")?.to_owned();
        if !matches!(architecture.as_str(), "llama" | "qwen2" | "qwen3") {
            return Err(ModelError::Unsupported { what: format!("GGUF architecture `{architecture}`") });
        }
        refuse_unused_keys(metadata, &architecture)?;
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| metadata.number(&key(name));
        let optional = |name: &str| metadata.optional_number(&key(name));
        let queries = number("attention.head_count")?;
        let hidden = number("embedding_length")?;
        let dim = match optional("attention.key_length")? {
            Some(dim) => dim,
            None => ratio(hidden, queries, "embedding_length by head_count")?,
        };
        for name in ["attention.value_length", "rope.dimension_count"] {
            if let Some(other) = optional(name)?.filter(|other| *other != dim) {
                return Err(ModelError::unused_field(key(name), &format!("{other}, with heads of {dim}")));
            }
        }
        for name in ["expert_count", "expert_used_count"] {
            if let Some(experts) = optional(name)?.filter(|experts| *experts != 0) {
                return Err(ModelError::unused_field(key(name), &experts));
            }
        }
        let theta = match (metadata.optional_float(&key("rope.freq_base"))?, architecture.as_str()) {
            (Some(theta), _) => theta,
            (None, "llama") => 10_000.0,
            (None, _) => metadata.float(&key("rope.freq_base"))?,
        };
        let has = |name: &str| weights.has_gguf(name);
        Ok(Spec::Decoder(DecoderSpec {
            layers: number("block_count")?,
            hidden,
            heads: heads(queries, optional("attention.head_count_kv")?.unwrap_or(queries), dim)?,
            ffn: number("feed_forward_length")?,
            vocab: metadata.list_len("tokenizer.ggml.tokens")?,
            context: number("context_length")?,
            norm_epsilon: metadata.float(&key("attention.layer_norm_rms_epsilon"))?,
            rope: Rope {
                theta,
                scaling: gguf_scaling(metadata, &architecture, weights, dim)?,
                interleaved: architecture == "llama",
            },
            window: None,
            qkv_bias: has("blk.0.attn_q.bias"),
            output_bias: has("blk.0.attn_output.bias"),
            gate_up_bias: has("blk.0.ffn_gate.bias"),
            down_bias: has("blk.0.ffn_down.bias"),
            qk_norm: has("blk.0.attn_q_norm.weight"),
            tied: !has("output.weight"),
            architecture,
        }))
    }
}

/// Keys of an architecture that are read, or checked to have no effect. Other groups of keys (`general.`, `tokenizer.`, ...)
/// hold no hyperparameters.
fn refuse_unused_keys(metadata: &Metadata, architecture: &str) -> Result<()> {
    const KNOWN: &[&str] = &[
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.layer_norm_rms_epsilon",
        "attention.value_length",
        "block_count",
        "context_length",
        "embedding_length",
        "expert_count",
        "expert_used_count",
        "feed_forward_length",
        "rope.dimension_count",
        "rope.freq_base",
        "rope.scale_linear",
        "rope.scaling.attn_factor",
        "rope.scaling.factor",
        // Whether the model was trained with the scaling.
        "rope.scaling.finetuned",
        "rope.scaling.original_context_length",
        "rope.scaling.type",
        "rope.scaling.yarn_attn_factor",
        "rope.scaling.yarn_beta_fast",
        "rope.scaling.yarn_beta_slow",
        "rope.scaling.yarn_ext_factor",
        // The number of tokens says the same.
        "vocab_size",
    ];
    let group = format!("{architecture}.");
    let own = metadata.keys().filter(|key| key.strip_prefix(&group).is_some_and(|name| !KNOWN.contains(&name)));
    match own.min() {
        Some(key) => Err(ModelError::unused_field(key.to_owned(), &metadata.shown(key))),
        None => Ok(()),
    }
}

/// As llama.cpp reads it: without a type, a factor means linear scaling.
fn gguf_scaling(metadata: &Metadata, architecture: &str, weights: &Weights, dim: usize) -> Result<Scaling> {
    let key = |name: &str| format!("{architecture}.rope.{name}");
    let float = |name: &str| metadata.optional_float(&key(name));
    let factor = match float("scaling.factor")? {
        Some(factor) => Some(factor),
        None => float("scale_linear")?,
    };
    let factor = factor.filter(|factor| *factor != 0.0);
    let attention = [float("scaling.attn_factor")?, float("scaling.yarn_attn_factor")?];
    let attention: f32 = attention.into_iter().flatten().product();
    let scaling = match metadata.optional_text(&key("scaling.type"))? {
        Some("yarn") => {
            let factor = factor.ok_or_else(|| ModelError::config(format!("`{}` is missing", key("scaling.factor"))))?;
            let yarn = Yarn::new(factor, metadata.number(&key("scaling.original_context_length"))?);
            if let Some(other) = float("scaling.yarn_ext_factor")?.filter(|factor| *factor != 1.0) {
                return Err(ModelError::unused_field(key("scaling.yarn_ext_factor"), &other));
            }
            Scaling::Yarn(Yarn {
                attention_factor: yarn.attention_factor * attention,
                fast_turns: float("scaling.yarn_beta_fast")?.unwrap_or(yarn.fast_turns),
                slow_turns: float("scaling.yarn_beta_slow")?.unwrap_or(yarn.slow_turns),
                ..yarn
            })
        }
        Some("linear") | None => match factor {
            Some(factor) if factor != 1.0 => Scaling::Linear { factor },
            _ => Scaling::None,
        },
        Some("none") => Scaling::None,
        Some(other) => return Err(ModelError::Unsupported { what: format!("rope scaling `{other}`") }),
    };
    if attention != 1.0 && !matches!(scaling, Scaling::Yarn(_)) {
        return Err(ModelError::unused_field(key("scaling.attn_factor"), &attention));
    }
    match (scaling, weights.has_gguf("rope_freqs.weight")) {
        (scaling, false) => Ok(scaling),
        (Scaling::None, true) => Ok(Scaling::Divided(weights.values("rope_freqs.weight", &[dim / 2])?)),
        (_, true) => Err(ModelError::Unsupported { what: "rope scaling beside `rope_freqs.weight`".into() }),
    }
}

fn decoder(kind: &str, fields: Fields<'_>) -> Result<DecoderSpec> {
    let queries = fields.number("num_attention_heads")?;
    let hidden = fields.number("hidden_size")?;
    let dim = match fields.optional_number("head_dim")? {
        Some(dim) => dim,
        None => ratio(hidden, queries, "hidden_size by num_attention_heads")?,
    };
    match fields.text("hidden_act")? {
        "silu" => {}
        other => return Err(ModelError::Unsupported { what: format!("activation `{other}`") }),
    }
    let layers = fields.number("num_hidden_layers")?;
    // Qwen2 and Mistral have no such field.
    let attention_bias = matches!(kind, "llama" | "qwen3") && fields.flag("attention_bias")?;
    let mlp_bias = kind == "llama" && fields.flag("mlp_bias")?;
    let spec = DecoderSpec {
        architecture: kind.to_owned(),
        layers,
        hidden,
        heads: heads(queries, fields.optional_number("num_key_value_heads")?.unwrap_or(queries), dim)?,
        ffn: fields.number("intermediate_size")?,
        vocab: fields.number("vocab_size")?,
        context: fields.number("max_position_embeddings")?,
        norm_epsilon: fields.float("rms_norm_eps")?,
        rope: rope(&fields)?,
        window: window(kind, layers, &fields)?,
        qkv_bias: kind == "qwen2" || attention_bias,
        output_bias: attention_bias,
        gate_up_bias: mlp_bias,
        down_bias: mlp_bias,
        qk_norm: kind == "qwen3",
        tied: fields.flag("tie_word_embeddings")?,
    };
    fields.finish(&switched_off())?;
    Ok(spec)
}

/// Which layers have a sliding window. Published configurations of Qwen name a window and say beside it that it is not used.
fn window(kind: &str, layers: usize, fields: &Fields<'_>) -> Result<Option<SlidingWindow>> {
    const FULL: &str = "full_attention";
    const SLIDING: &str = "sliding_attention";
    let of_qwen = matches!(kind, "qwen2" | "qwen3");
    let is_used = match kind {
        "mistral" => true,
        _ => fields.flag("use_sliding_window")?,
    };
    let named = fields.optional_number("sliding_window")?;
    // What transformers takes where the configuration has no such field.
    let tokens = if fields.has("sliding_window") { named } else { Some(4096) }.filter(|_| is_used);
    let first_layer = match kind {
        "mistral" => 0,
        _ => fields.optional_number("max_window_layers")?.unwrap_or(28),
    };
    if tokens == Some(0) {
        return Err(ModelError::config("a sliding window of no tokens"));
    }
    if kind == "llama" && (is_used || (named.is_some() && !fields.has("use_sliding_window"))) {
        return Err(ModelError::unused_field(
            "sliding_window".into(),
            &format!("{named:?}, which `llama` does not have"),
        ));
    }
    let by_position: Vec<bool> = (0..layers).map(|layer| tokens.is_some() && layer >= first_layer).collect();
    let slides = match fields.optional_texts("layer_types")? {
        None => by_position,
        Some(types) => {
            if let Some(other) = types.iter().find(|kind| ![FULL, SLIDING].contains(*kind)) {
                return Err(ModelError::Unsupported { what: format!("layer type `{other}`") });
            }
            if types.len() != layers {
                return Err(ModelError::config(format!("{} `layer_types` for {layers} layers", types.len())));
            }
            let slides: Vec<bool> = types.iter().map(|kind| *kind == SLIDING).collect();
            // Only Qwen's networks follow the list; for others it has to say what they do.
            if (slides.contains(&true) && tokens.is_none()) || (!of_qwen && slides != by_position) {
                return Err(ModelError::config("`layer_types` and `sliding_window` contradict each other"));
            }
            slides
        }
    };
    Ok(tokens.filter(|_| slides.contains(&true)).map(|tokens| SlidingWindow { tokens, layers: slides }))
}

/// Newer configurations have theta and scaling in `rope_parameters`, older ones `rope_theta` beside `rope_scaling`.
fn rope(fields: &Fields<'_>) -> Result<Rope> {
    let part = match fields.part("rope_parameters")? {
        Some(part) => Some(part),
        None => fields.part("rope_scaling")?,
    };
    let outer = fields.optional_float("rope_theta")?;
    let inner = part.as_ref().map_or(Ok(None), |part| part.optional_float("rope_theta"))?;
    if let (Some(outer), Some(inner)) = (outer, inner)
        && outer != inner
    {
        return Err(ModelError::config(format!("`rope_theta` is both {outer} and {inner}")));
    }
    let theta = inner.or(outer).map_or_else(|| fields.float("rope_theta"), Ok)?;
    let scaling = match part {
        Some(part) => scaling(part)?,
        None => Scaling::None,
    };
    Ok(Rope { theta, scaling, interleaved: false })
}

fn scaling(rope: Fields<'_>) -> Result<Scaling> {
    let (new, old) = (rope.optional_text("rope_type")?, rope.optional_text("type")?);
    if let (Some(new), Some(old)) = (new, old)
        && new != old
    {
        return Err(ModelError::config(format!("the type of rope scaling is both `{new}` and `{old}`")));
    }
    let scaling = match new.or(old) {
        Some("yarn") => Scaling::Yarn(yarn(&rope)?),
        Some("linear") => Scaling::Linear { factor: rope.float("factor")? },
        Some("llama3") => {
            let [low_turns, high_turns] = [rope.float("low_freq_factor")?, rope.float("high_freq_factor")?];
            let original = rope.number("original_max_position_embeddings")?;
            if low_turns >= high_turns {
                return Err(ModelError::config(format!("low_freq_factor {low_turns}, high_freq_factor {high_turns}")));
            }
            Scaling::Llama3 { factor: rope.float("factor")?, low_turns, high_turns, original }
        }
        Some("default") | None => Scaling::None,
        Some(other) => return Err(ModelError::Unsupported { what: format!("rope scaling `{other}`") }),
    };
    rope.finish(&[("partial_rotary_factor", json!(1.0))])?;
    Ok(scaling)
}

fn yarn(rope: &Fields<'_>) -> Result<Yarn> {
    let yarn = Yarn::new(rope.float("factor")?, rope.number("original_max_position_embeddings")?);
    let scales = [rope.optional_float("mscale")?, rope.optional_float("mscale_all_dim")?];
    // As in transformers, zero counts as missing.
    let derived = match scales.map(|scale| scale.filter(|scale| *scale != 0.0)) {
        [Some(one), Some(all)] => Yarn::attention_factor(yarn.factor, one) / Yarn::attention_factor(yarn.factor, all),
        _ => yarn.attention_factor,
    };
    let turns = |name: &str| rope.optional_float(name).map(|turns| turns.filter(|turns| *turns != 0.0));
    Ok(Yarn {
        attention_factor: rope.optional_float("attention_factor")?.unwrap_or(derived),
        fast_turns: turns("beta_fast")?.unwrap_or(yarn.fast_turns),
        slow_turns: turns("beta_slow")?.unwrap_or(yarn.slow_turns),
        truncate: if rope.has("truncate") { rope.flag("truncate")? } else { true },
        ..yarn
    })
}

fn encoder(kind: &str, fields: Fields<'_>) -> Result<EncoderSpec> {
    let queries = fields.number("num_attention_heads")?;
    let hidden = fields.number("hidden_size")?;
    match fields.text("hidden_act")? {
        "gelu" => {}
        other => return Err(ModelError::Unsupported { what: format!("activation `{other}`") }),
    }
    if let Some(kind) = fields.optional_text("position_embedding_type")?.filter(|kind| *kind != "absolute") {
        return Err(ModelError::Unsupported { what: format!("position embeddings of type `{kind}`") });
    }
    let first_position = if kind == "xlm-roberta" { fields.number("pad_token_id")? + 1 } else { 0 };
    let positions = fields.number("max_position_embeddings")?;
    if positions <= first_position {
        return Err(ModelError::config(format!("{positions} positions, the first of them {first_position}")));
    }
    let spec = EncoderSpec {
        architecture: kind.to_owned(),
        layers: fields.number("num_hidden_layers")?,
        hidden,
        heads: heads(queries, queries, ratio(hidden, queries, "hidden_size by num_attention_heads")?)?,
        ffn: fields.number("intermediate_size")?,
        vocab: fields.number("vocab_size")?,
        positions,
        first_position,
        token_types: fields.number("type_vocab_size")?,
        norm_epsilon: fields.float("layer_norm_eps")?,
    };
    // An encoder has no output matrix to be tied.
    let _ = fields.flag("tie_word_embeddings")?;
    fields.finish(&switched_off())?;
    Ok(spec)
}

fn heads(queries: usize, keys: usize, dim: usize) -> Result<Heads> {
    if keys == 0 || !queries.is_multiple_of(keys) || !dim.is_multiple_of(2) || dim == 0 {
        return Err(ModelError::config(format!("{queries} query heads over {keys} key heads of {dim}")));
    }
    Ok(Heads { queries, keys, dim })
}

fn ratio(whole: usize, parts: usize, what: &str) -> Result<usize> {
    match whole.checked_div(parts) {
        Some(part) if part * parts == whole => Ok(part),
        _ => Err(ModelError::config(format!("{what} is {whole} / {parts}"))),
    }
}
