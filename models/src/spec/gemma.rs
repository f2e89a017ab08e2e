//! Gemma 3 (arXiv 2503.19786, section 2): norms of outputs too, GeGLU, and five layers with a sliding window and a rotary
//! embedding of their own to one that attends to all tokens.

use serde_json::json;

use super::config::{FULL, SLIDING, layer_types, scaling};
use super::{Activation, DecoderSpec, Rope, Scaling, SlidingWindow, heads, layers};
use crate::error::{ModelError, Result};
use crate::fields::{Fields, switched_off};
use crate::gguf::Metadata;

/// Period of the layers that attend to all tokens.
const PERIOD: usize = 6;
/// Theta of the layers with a window.
const WINDOW_THETA: f32 = 10_000.0;

/// Gemma 3's text decoder. Its published configurations leave out what transformers has as default.
pub(super) fn decoder(fields: Fields<'_>) -> Result<DecoderSpec> {
    let number = |name: &str, default: usize| Ok::<_, ModelError>(fields.optional_number(name)?.unwrap_or(default));
    let hidden = fields.number("hidden_size")?;
    let layers = layers(fields.number("num_hidden_layers")?)?;
    let queries = number("num_attention_heads", 8)?;
    let dim = number("head_dim", 256)?;
    for name in ["hidden_activation", "hidden_act"] {
        if let Some(other) = fields.optional_text(name)?.filter(|name| *name != "gelu_pytorch_tanh") {
            return Err(ModelError::Unsupported { what: format!("activation `{other}`") });
        }
    }
    let attention_bias = fields.flag("attention_bias")?;
    let (rope, window_rope) = ropes(&fields)?;
    let spec = DecoderSpec {
        architecture: "gemma3".into(),
        layers,
        hidden,
        heads: heads(queries, number("num_key_value_heads", 4)?, dim)?,
        ffn: fields.number("intermediate_size")?,
        routing: None,
        activation: Activation::GeluTanh,
        vocab: number("vocab_size", 262_208)?,
        embedding_scale: (hidden as f32).sqrt(),
        context: rope.scaling.context(number("max_position_embeddings", 131_072)?),
        norm_epsilon: fields.optional_float("rms_norm_eps")?.unwrap_or(1e-6),
        norm_offset: 1.0,
        post_norms: true,
        rope,
        score_scale: score_scale(dim, fields.optional_float("query_pre_attn_scalar")?.unwrap_or(256.0)),
        window: config_window(layers, window_rope, &fields)?,
        qkv_bias: attention_bias,
        output_bias: attention_bias,
        gate_up_bias: false,
        down_bias: false,
        qk_norm: true,
        tied: if fields.has("tie_word_embeddings") { fields.flag("tie_word_embeddings")? } else { true },
    };
    let mut neutral = switched_off();
    neutral.push(("use_bidirectional_attention", json!(false)));
    fields.finish(&neutral)?;
    Ok(spec)
}

/// The rotary embeddings of the layers without and with a window; newer configurations have both in `rope_parameters`.
fn ropes(fields: &Fields<'_>) -> Result<(Rope, Rope)> {
    let named = |name: &str, default: f32| Ok::<_, ModelError>(fields.optional_float(name)?.unwrap_or(default));
    let (theta, window_theta) = (named("rope_theta", 1e6)?, named("rope_local_base_freq", WINDOW_THETA)?);
    let made = |part: Option<Fields<'_>>, theta: f32| -> Result<Rope> {
        let own = part.as_ref().map_or(Ok(None), |part| part.optional_float("rope_theta"))?;
        let scaling = part.map_or(Ok(Scaling::None), scaling)?;
        Ok(Rope { theta: own.unwrap_or(theta), scaling, interleaved: false })
    };
    let Some(both) = fields.part("rope_parameters")? else {
        return Ok((made(fields.part("rope_scaling")?, theta)?, plain(window_theta)));
    };
    let ropes = (made(both.part(FULL)?, theta)?, made(both.part(SLIDING)?, window_theta)?);
    both.finish(&[])?;
    Ok(ropes)
}

/// By the type of each layer, or by a period.
fn config_window(layers: usize, rope: Rope, fields: &Fields<'_>) -> Result<Option<SlidingWindow>> {
    let periods =
        [fields.optional_number("sliding_window_pattern")?, fields.optional_number("_sliding_window_pattern")?];
    let by_period = by_period(layers, periods.into_iter().flatten().next().unwrap_or(PERIOD))?;
    let slides = layer_types(layers, fields)?.unwrap_or(by_period);
    let tokens = fields.optional_number("sliding_window")?.unwrap_or(4096);
    let window = window(tokens, slides, rope)?;
    Ok(Some(window).filter(|window| window.layers.contains(&true)))
}

/// The text decoder of a model that reads images too; its image encoder is not loaded.
pub(super) fn text_decoder(fields: Fields<'_>) -> Result<DecoderSpec> {
    const OF_IMAGES: [&str; 5] =
        ["boi_token_index", "eoi_token_index", "image_token_id", "image_token_index", "mm_tokens_per_image"];
    let text = fields.part("text_config")?.ok_or_else(|| ModelError::config("`text_config` is missing"))?;
    fields.part("vision_config")?;
    for name in OF_IMAGES {
        fields.optional_number(name)?;
    }
    fields.finish(&[("tie_word_embeddings", json!(true))])?;
    match text.optional_text("model_type")? {
        Some("gemma3_text") | None => decoder(text),
        Some(other) => Err(ModelError::Unsupported { what: format!("text model of type `{other}`") }),
    }
}

/// Which layers of Gemma 3 have a sliding window. Files do not say which; in all published models it is five of six.
pub(super) fn gguf_window(metadata: &Metadata, layers: usize) -> Result<SlidingWindow> {
    let key = |name: &str| format!("gemma3.{name}");
    let tokens = metadata.number(&key("attention.sliding_window"))?;
    let period = metadata.optional_number(&key("attention.sliding_window_pattern"))?.unwrap_or(PERIOD);
    let theta = metadata.optional_float(&key("rope.freq_base_swa"))?.unwrap_or(WINDOW_THETA);
    window(tokens, by_period(layers, period)?, plain(theta))
}

/// Which layers have a window, where the last of every `period` has none.
fn by_period(layers: usize, period: usize) -> Result<Vec<bool>> {
    match period {
        0 => Err(ModelError::config("layers with a sliding window by a period of 0")),
        _ => Ok((1..=layers).map(|layer| !layer.is_multiple_of(period)).collect()),
    }
}

/// The window of these layers, and their rotary embedding.
fn window(tokens: usize, layers: Vec<bool>, rope: Rope) -> Result<SlidingWindow> {
    if tokens == 0 {
        return Err(ModelError::config("a sliding window of no tokens"));
    }
    Ok(SlidingWindow { tokens, layers, rope: Some(rope) })
}

fn plain(theta: f32) -> Rope {
    Rope { theta, scaling: Scaling::None, interleaved: false }
}

/// The factor that makes 1/√D to 1/√`width`.
pub(super) fn score_scale(dim: usize, width: f32) -> f32 {
    (dim as f32 / width).sqrt()
}
