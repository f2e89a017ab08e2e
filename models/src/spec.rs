//! What distinguishes the checkpoints that one network can wear. A model is a spec, not a file.

use kernels::attention::Heads;
use serde_json::Value;

use crate::error::{ModelError, Result};
use crate::gguf::Metadata;

/// A decoder of the Llama family: RMSNorm, rotary positions, grouped queries, SwiGLU.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderSpec {
    /// `llama`, `qwen2` or `qwen3`, as checkpoints call it.
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
    /// Some layers see the latest tokens only (`use_sliding_window`).
    pub window: Option<SlidingWindow>,
    /// Query, key and value projections have a bias (Qwen2).
    pub qkv_bias: bool,
    /// Query and key heads are normalised before the rotation (Qwen3).
    pub qk_norm: bool,
    /// The output matrix is the token embedding.
    pub tied: bool,
}

impl DecoderSpec {
    /// Number of weights, without norms and biases.
    pub fn parameters(&self) -> u64 {
        let Heads { queries, keys, dim } = self.heads;
        let attention = 2 * (queries + keys) * dim * self.hidden;
        let embeddings = if self.tied { 1 } else { 2 } * self.vocab * self.hidden;
        (self.layers * (attention + 3 * self.hidden * self.ffn) + embeddings) as u64
    }
}

/// A limit to how far back a token sees, in the layers from one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Tokens that a token sees, itself included.
    pub tokens: usize,
    pub first_layer: usize,
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaling {
    None,
    /// YaRN (arXiv 2309.00071) by `factor`, for a model trained on `original` positions.
    Yarn {
        factor: f32,
        original: usize,
    },
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
    /// If the model type is not one of ours or a value is missing or impossible.
    pub fn from_config(config: &Value) -> Result<Spec> {
        let fields = Fields(config);
        match fields.text("model_type")? {
            kind @ ("llama" | "qwen2" | "qwen3") => Ok(Spec::Decoder(decoder(kind, &fields)?)),
            kind @ ("bert" | "xlm-roberta") => Ok(Spec::Encoder(encoder(kind, &fields)?)),
            other => Err(ModelError::Unsupported { what: format!("model type `{other}`") }),
        }
    }

    /// Reads the metadata of a GGUF file; `tied` and `qkv_bias` follow from which tensors it has.
    ///
    /// # Errors
    /// As [`Spec::from_config`].
    pub fn from_gguf(metadata: &Metadata, has_tensor: impl Fn(&str) -> bool) -> Result<Spec> {
        let architecture = metadata.text("general.architecture")?.to_owned();
        if !matches!(architecture.as_str(), "llama" | "qwen2" | "qwen3") {
            return Err(ModelError::Unsupported { what: format!("GGUF architecture `{architecture}`") });
        }
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| metadata.number(&key(name));
        let queries = number("attention.head_count")?;
        let hidden = number("embedding_length")?;
        let dim =
            number("attention.key_length").or_else(|_| ratio(hidden, queries, "embedding_length by head_count"))?;
        let scaling = match metadata.text(&key("rope.scaling.type")) {
            Ok("yarn") => Scaling::Yarn {
                factor: metadata.float(&key("rope.scaling.factor"))?,
                original: number("rope.scaling.original_context_length")?,
            },
            Ok("none") | Err(_) => Scaling::None,
            Ok(other) => return Err(ModelError::Unsupported { what: format!("rope scaling `{other}`") }),
        };
        let theta = match (metadata.float(&key("rope.freq_base")), architecture.as_str()) {
            (Ok(theta), _) => theta,
            (Err(_), "llama") => 10_000.0,
            (Err(error), _) => return Err(error),
        };
        Ok(Spec::Decoder(DecoderSpec {
            layers: number("block_count")?,
            hidden,
            heads: heads(queries, number("attention.head_count_kv").unwrap_or(queries), dim)?,
            ffn: number("feed_forward_length")?,
            vocab: metadata.list_len("tokenizer.ggml.tokens")?,
            context: number("context_length")?,
            norm_epsilon: metadata.float(&key("attention.layer_norm_rms_epsilon"))?,
            rope: Rope { theta, scaling, interleaved: architecture == "llama" },
            window: None,
            qkv_bias: has_tensor("blk.0.attn_q.bias"),
            qk_norm: has_tensor("blk.0.attn_q_norm.weight"),
            tied: !has_tensor("output.weight"),
            architecture,
        }))
    }
}

fn decoder(kind: &str, fields: &Fields<'_>) -> Result<DecoderSpec> {
    let queries = fields.number("num_attention_heads")?;
    let hidden = fields.number("hidden_size")?;
    let dim = fields.number("head_dim").or_else(|_| ratio(hidden, queries, "hidden_size by num_attention_heads"))?;
    match fields.text("hidden_act") {
        Ok("silu") => {}
        other => return Err(ModelError::Unsupported { what: format!("activation {other:?}") }),
    }
    // Newer configurations keep theta and scaling together.
    let rope = fields.part("rope_parameters").or_else(|| fields.part("rope_scaling"));
    let theta = fields
        .float("rope_theta")
        .or_else(|error| rope.as_ref().map_or(Err(error), |rope| rope.float("rope_theta")))?;
    Ok(DecoderSpec {
        architecture: kind.to_owned(),
        layers: fields.number("num_hidden_layers")?,
        hidden,
        heads: heads(queries, fields.number("num_key_value_heads").unwrap_or(queries), dim)?,
        ffn: fields.number("intermediate_size")?,
        vocab: fields.number("vocab_size")?,
        context: fields.number("max_position_embeddings")?,
        norm_epsilon: fields.float("rms_norm_eps")?,
        rope: Rope { theta, scaling: scaling(rope)?, interleaved: false },
        window: window(fields)?,
        qkv_bias: kind == "qwen2" || fields.flag("attention_bias"),
        qk_norm: kind == "qwen3",
        tied: fields.flag("tie_word_embeddings"),
    })
}

/// Published configurations name a window and say beside it that it is not used.
fn window(fields: &Fields<'_>) -> Result<Option<SlidingWindow>> {
    if !fields.flag("use_sliding_window") || fields.number("sliding_window").is_err() {
        return Ok(None);
    }
    let tokens = fields.number("sliding_window")?;
    if tokens == 0 {
        return Err(ModelError::config("a sliding window of no tokens"));
    }
    // What transformers takes where a configuration does not say.
    let first_layer = fields.number("max_window_layers").unwrap_or(28);
    Ok(Some(SlidingWindow { tokens, first_layer }))
}

fn scaling(rope: Option<Fields<'_>>) -> Result<Scaling> {
    let Some(rope) = rope else { return Ok(Scaling::None) };
    match rope.text("rope_type").or_else(|_| rope.text("type")) {
        Ok("yarn") => Ok(Scaling::Yarn {
            factor: rope.float("factor")?,
            original: rope.number("original_max_position_embeddings")?,
        }),
        Ok("default") | Err(_) => Ok(Scaling::None),
        Ok(other) => Err(ModelError::Unsupported { what: format!("rope scaling `{other}`") }),
    }
}

fn encoder(kind: &str, fields: &Fields<'_>) -> Result<EncoderSpec> {
    let queries = fields.number("num_attention_heads")?;
    let hidden = fields.number("hidden_size")?;
    match fields.text("hidden_act") {
        Ok("gelu") => {}
        other => return Err(ModelError::Unsupported { what: format!("activation {other:?}") }),
    }
    if fields.text("position_embedding_type").is_ok_and(|kind| kind != "absolute") {
        return Err(ModelError::Unsupported { what: "relative position embeddings".into() });
    }
    let first_position = if kind == "xlm-roberta" { fields.number("pad_token_id")? + 1 } else { 0 };
    let positions = fields.number("max_position_embeddings")?;
    if positions <= first_position {
        return Err(ModelError::config(format!("{positions} positions, the first of them {first_position}")));
    }
    Ok(EncoderSpec {
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
    })
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

/// Typed access to a JSON object.
struct Fields<'a>(&'a Value);

impl<'a> Fields<'a> {
    fn get<T>(&self, name: &str, as_type: impl Fn(&'a Value) -> Option<T>) -> Result<T> {
        let value = self.0.get(name).filter(|value| !value.is_null());
        let value = value.ok_or_else(|| ModelError::config(format!("`{name}` is missing")))?;
        as_type(value).ok_or_else(|| ModelError::config(format!("`{name}` is {value}")))
    }

    fn text(&self, name: &str) -> Result<&'a str> {
        self.get(name, Value::as_str)
    }

    fn number(&self, name: &str) -> Result<usize> {
        self.get(name, |value| value.as_u64().and_then(|n| usize::try_from(n).ok()))
    }

    fn float(&self, name: &str) -> Result<f32> {
        self.get(name, |value| value.as_f64().map(|x| x as f32))
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn part(&self, name: &str) -> Option<Fields<'a>> {
        self.0.get(name).filter(|value| value.is_object()).map(Fields)
    }
}
