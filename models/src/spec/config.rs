//! Hyperparameters from a Hugging Face `config.json`.

use serde_json::{Value, json};

use super::{
    Activation, DecoderSpec, EncoderSpec, Rope, Routing, Scaling, SlidingWindow, Spec, Yarn, gemma, heads, layers,
    ratio,
};
use crate::error::{ModelError, Result};
use crate::fields::{Fields, switched_off};

// Types of layers.
pub(super) const FULL: &str = "full_attention";
pub(super) const SLIDING: &str = "sliding_attention";

/// What transformers takes where a configuration has no `rope_theta`, for all networks that [`decoder`] reads.
const DEFAULT_THETA: f32 = 10_000.0;

impl Spec {
    /// Reads a Hugging Face `config.json`.
    ///
    /// # Errors
    /// If the model type is not one of ours, a value is missing or impossible, or a field has no effect here.
    pub fn from_config(config: &Value) -> Result<Spec> {
        let fields = Fields::new(config);
        match fields.text("model_type")? {
            kind @ ("llama" | "mistral" | "qwen2" | "qwen3" | "qwen3_moe") => Ok(Spec::Decoder(decoder(kind, fields)?)),
            "gemma3_text" => Ok(Spec::Decoder(gemma::decoder(fields)?)),
            "gemma3" => Ok(Spec::Decoder(gemma::text_decoder(fields)?)),
            kind @ ("bert" | "xlm-roberta") => Ok(Spec::Encoder(encoder(kind, fields)?)),
            other => Err(ModelError::Unsupported { what: format!("model type `{other}`") }),
        }
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
    let layers = layers(fields.number("num_hidden_layers")?)?;
    // Qwen2 and Mistral have no such field.
    let attention_bias = matches!(kind, "llama" | "qwen3" | "qwen3_moe") && fields.flag("attention_bias")?;
    let mlp_bias = kind == "llama" && fields.flag("mlp_bias")?;
    let rope = rope(&fields)?;
    let spec = DecoderSpec {
        architecture: kind.replace('_', ""),
        layers,
        hidden,
        heads: heads(queries, fields.optional_number("num_key_value_heads")?.unwrap_or(queries), dim)?,
        ffn: fields.number("intermediate_size")?,
        routing: if kind == "qwen3_moe" { Some(routing(&fields)?) } else { None },
        activation: Activation::Silu,
        vocab: fields.number("vocab_size")?,
        embedding_scale: 1.0,
        context: rope.scaling.context(fields.number("max_position_embeddings")?),
        norm_epsilon: fields.float("rms_norm_eps")?,
        norm_offset: 0.0,
        post_norms: false,
        rope,
        score_scale: 1.0,
        window: window(kind, layers, &fields)?,
        qkv_bias: kind == "qwen2" || attention_bias,
        output_bias: attention_bias,
        gate_up_bias: mlp_bias,
        down_bias: mlp_bias,
        qk_norm: matches!(kind, "qwen3" | "qwen3_moe"),
        tied: fields.flag("tie_word_embeddings")?,
    };
    fields.finish(&switched_off())?;
    Ok(spec)
}

/// The experts of Qwen3-MoE; all published checkpoints have them in every layer.
fn routing(fields: &Fields<'_>) -> Result<Routing> {
    let unused = |name: &str, value: String| Err(ModelError::unused_field(name.into(), &value));
    if let Some(step) = fields.optional_number("decoder_sparse_step")?.filter(|step| *step != 1) {
        return unused("decoder_sparse_step", step.to_string());
    }
    if let Some(layers) = fields.optional_list_len("mlp_only_layers")?.filter(|layers| *layers != 0) {
        return unused("mlp_only_layers", format!("a list of {layers}"));
    }
    // Of training.
    let _ = (fields.optional_float("router_aux_loss_coef")?, fields.flag("output_router_logits")?);
    Routing {
        experts: fields.number("num_experts")?,
        used: fields.number("num_experts_per_tok")?,
        ffn: fields.number("moe_intermediate_size")?,
        normalised: fields.flag("norm_topk_prob")?,
    }
    .checked()
}

/// Which layers have a sliding window. Published configurations of Qwen name a window and say beside it that it is not used.
fn window(kind: &str, layers: usize, fields: &Fields<'_>) -> Result<Option<SlidingWindow>> {
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
    if kind == "qwen3_moe" && is_used {
        return Err(ModelError::unused_field("use_sliding_window".into(), &"true, with experts"));
    }
    if kind == "llama" && (is_used || (named.is_some() && !fields.has("use_sliding_window"))) {
        return Err(ModelError::unused_field(
            "sliding_window".into(),
            &format!("{named:?}, which `llama` does not have"),
        ));
    }
    let by_position: Vec<bool> = (0..layers).map(|layer| tokens.is_some() && layer >= first_layer).collect();
    let slides = match layer_types(layers, fields)? {
        None => by_position,
        Some(slides) => {
            // Only Qwen's networks follow the list; for others it has to say what they do.
            if (slides.contains(&true) && tokens.is_none()) || (!of_qwen && slides != by_position) {
                return Err(ModelError::config("`layer_types` and `sliding_window` contradict each other"));
            }
            slides
        }
    };
    Ok(tokens.filter(|_| slides.contains(&true)).map(|tokens| SlidingWindow { tokens, layers: slides, rope: None }))
}

/// Which layers have a window by `layer_types`, if the field is there.
pub(super) fn layer_types(layers: usize, fields: &Fields<'_>) -> Result<Option<Vec<bool>>> {
    let Some(types) = fields.optional_texts("layer_types")? else { return Ok(None) };
    if let Some(other) = types.iter().find(|kind| ![FULL, SLIDING].contains(*kind)) {
        return Err(ModelError::Unsupported { what: format!("layer type `{other}`") });
    }
    if types.len() != layers {
        return Err(ModelError::config(format!("{} `layer_types` for {layers} layers", types.len())));
    }
    Ok(Some(types.iter().map(|kind| *kind == SLIDING).collect()))
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
    let theta = inner.or(outer).unwrap_or(DEFAULT_THETA);
    let scaling = match part {
        Some(part) => scaling(part)?,
        None => Scaling::None,
    };
    Ok(Rope { theta, scaling, interleaved: false })
}

/// Scaling by a part of the configuration about the rotary embedding.
pub(super) fn scaling(rope: Fields<'_>) -> Result<Scaling> {
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
        layers: layers(fields.number("num_hidden_layers")?)?,
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
