//! Hyperparameters from a GGUF file's metadata.

use super::{Activation, DecoderSpec, Rope, Routing, Scaling, Spec, Yarn, gemma, heads, layers, ratio};
use crate::error::{ModelError, Result};
use crate::gguf::Metadata;
use crate::weights::Weights;

impl Spec {
    /// Reads the metadata of a GGUF file; biases, tied embeddings and divisors of frequencies follow from its tensors.
    ///
    /// # Errors
    /// As [`Spec::from_config`].
    pub fn from_gguf(metadata: &Metadata, weights: &Weights) -> Result<Spec> {
        if let Some(kind) = metadata.optional_text("general.type")?.filter(|kind| *kind != "model") {
            return Err(ModelError::Unsupported { what: format!("a GGUF file of type `{kind}` as a model") });
        }
        let architecture = metadata.text("general.architecture")?.to_owned();
        if !matches!(architecture.as_str(), "llama" | "qwen2" | "qwen3" | "qwen3moe" | "gemma3") {
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
        let routing = if architecture == "qwen3moe" { Some(routing(metadata)?) } else { None };
        for name in ["expert_count", "expert_used_count", "expert_feed_forward_length"] {
            if let Some(experts) = optional(name)?.filter(|experts| *experts != 0 && routing.is_none()) {
                return Err(ModelError::unused_field(key(name), &experts));
            }
        }
        let theta = match (metadata.optional_float(&key("rope.freq_base"))?, architecture.as_str()) {
            (Some(theta), _) => theta,
            (None, "llama") => 10_000.0,
            (None, _) => metadata.float(&key("rope.freq_base"))?,
        };
        let has = |name: &str| weights.has_gguf(name);
        let is_gemma = architecture == "gemma3";
        let layers = layers(number("block_count")?)?;
        let window = if is_gemma { Some(gemma::gguf_window(metadata, layers)?) } else { None };
        let scaling = gguf_scaling(metadata, &architecture, weights, dim)?;
        Ok(Spec::Decoder(DecoderSpec {
            layers,
            hidden,
            heads: heads(queries, optional("attention.head_count_kv")?.unwrap_or(queries), dim)?,
            ffn: number("feed_forward_length")?,
            routing,
            activation: if is_gemma { Activation::GeluTanh } else { Activation::Silu },
            vocab: metadata.list_len("tokenizer.ggml.tokens")?,
            embedding_scale: if is_gemma { (hidden as f32).sqrt() } else { 1.0 },
            context: scaling.context(number("context_length")?),
            norm_epsilon: metadata.float(&key("attention.layer_norm_rms_epsilon"))?,
            // The converter adds the 1.
            norm_offset: 0.0,
            post_norms: is_gemma,
            // No key says it. 62 blocks has the model of 27B, whose scores are divided by √(H/A), as in llama.cpp.
            score_scale: if is_gemma && layers == 62 {
                gemma::score_scale(dim, hidden as f32 / queries as f32)
            } else {
                1.0
            },
            rope: Rope { theta, scaling, interleaved: architecture == "llama" },
            window,
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

/// The experts of Qwen3-MoE. As in llama.cpp their shares add up to 1; files have no key for it.
fn routing(metadata: &Metadata) -> Result<Routing> {
    let number = |name: &str| metadata.number(&format!("qwen3moe.{name}"));
    let (experts, used) = (number("expert_count")?, number("expert_used_count")?);
    Routing { experts, used, ffn: number("expert_feed_forward_length")?, normalised: true }.checked()
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
        "expert_feed_forward_length",
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
    const OF_GEMMA: &[&str] = &["attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base_swa"];
    let group = format!("{architecture}.");
    // The image encoder of Gemma 3 is in a file of its own.
    let of_gemma = |name: &str| OF_GEMMA.contains(&name) || name.starts_with("vision.") || name.starts_with("mm.");
    let is_known = |name: &str| KNOWN.contains(&name) || (architecture == "gemma3" && of_gemma(name));
    let own = metadata.keys().filter(|key| key.strip_prefix(&group).is_some_and(|name| !is_known(name)));
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
