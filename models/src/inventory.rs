//! Which tensors each network reads. A checkpoint with any other tensor is refused, because ignoring it would give wrong
//! results without a report.

use std::collections::HashSet;

use crate::error::{ModelError, Result};
use crate::spec::{DecoderSpec, EncoderSpec, Scaling};
use crate::weights::Weights;

/// Refuses tensors that a decoder of this spec does not read.
///
/// # Errors
/// [`ModelError::UnusedTensors`]; [`ModelError::Config`] for an output matrix that differs from the embedding to which the
/// configuration ties it.
pub(crate) fn check_decoder(spec: &DecoderSpec, weights: &Weights) -> Result<()> {
    let (embedding, head) = ("model.embed_tokens.weight", "lm_head.weight");
    let own_head = weights.own_name(head);
    weights.refuse_others(&decoder_tensors(spec), |name| (spec.tied && name == own_head) || is_derived(name))?;
    if spec.tied && weights.has(head) && !weights.are_equal(embedding, head) {
        let reason = format!("`tie_word_embeddings` is true, but `{head}` differs from `{embedding}`");
        return Err(ModelError::config(reason));
    }
    Ok(())
}

/// Refuses tensors that an encoder of this spec does not read, other than those behind its last layer that embedding does
/// without: the pooler and the heads of pre-training.
///
/// # Errors
/// [`ModelError::UnusedTensors`].
pub(crate) fn check_encoder(spec: &EncoderSpec, weights: &Weights) -> Result<()> {
    const BEHIND: [&str; 7] = [
        "pooler.dense.",
        "bert.pooler.dense.",
        "roberta.pooler.dense.",
        "cls.predictions.",
        "cls.seq_relationship.",
        "lm_head.",
        "embeddings.token_type_ids",
    ];
    let ignored = |name: &str| is_derived(name) || BEHIND.iter().any(|start| name.starts_with(start));
    weights.refuse_others(&encoder_tensors(spec), ignored)
}

/// Buffers that follow from the configuration: frequencies of the rotary embedding, ascending position ids.
fn is_derived(name: &str) -> bool {
    name.ends_with("rotary_emb.inv_freq") || name.ends_with("embeddings.position_ids")
}

/// The tensors of a decoder by their Hugging Face names.
fn decoder_tensors(spec: &DecoderSpec) -> HashSet<String> {
    let mut names = HashSet::from(["model.embed_tokens.weight", "model.norm.weight"].map(str::to_owned));
    if !spec.tied {
        names.insert("lm_head.weight".to_owned());
    }
    if let Scaling::Divided(_) = spec.rope.scaling {
        names.insert("rope_freqs.weight".to_owned());
    }
    // Each part with whether it has a bias.
    let linear = [
        ("self_attn.q_proj", spec.qkv_bias),
        ("self_attn.k_proj", spec.qkv_bias),
        ("self_attn.v_proj", spec.qkv_bias),
        ("self_attn.o_proj", spec.output_bias),
    ];
    let feed_forward =
        [("mlp.gate_proj", spec.gate_up_bias), ("mlp.up_proj", spec.gate_up_bias), ("mlp.down_proj", spec.down_bias)];
    let linear: Vec<(&str, bool)> = match spec.routing {
        None => linear.into_iter().chain(feed_forward).collect(),
        Some(_) => linear.into_iter().chain([("mlp.gate", false)]).collect(),
    };
    let norms = ["input_layernorm", "post_attention_layernorm"].into_iter();
    let norms = norms.chain(["self_attn.q_norm", "self_attn.k_norm"].into_iter().filter(|_| spec.qk_norm));
    let of_feed_forward = ["pre_feedforward_layernorm", "post_feedforward_layernorm"].into_iter();
    let norms = norms.chain(of_feed_forward.filter(|_| spec.post_norms));
    let norms: Vec<&str> = norms.collect();
    for layer in 0..spec.layers {
        names.extend(norms.iter().map(|part| format!("model.layers.{layer}.{part}.weight")));
        names.extend(linear.iter().map(|(part, _)| format!("model.layers.{layer}.{part}.weight")));
        let biases = linear.iter().filter(|(_, has_bias)| *has_bias);
        names.extend(biases.map(|(part, _)| format!("model.layers.{layer}.{part}.bias")));
        for expert in 0..spec.routing.map_or(0, |routing| routing.experts) {
            let of_expert = ["gate_proj", "up_proj", "down_proj"]
                .map(|part| format!("model.layers.{layer}.mlp.experts.{expert}.{part}.weight"));
            names.extend(of_expert);
        }
    }
    names
}

/// The tensors of an encoder by their Hugging Face names.
fn encoder_tensors(spec: &EncoderSpec) -> HashSet<String> {
    const EMBEDDINGS: [&str; 5] = [
        "word_embeddings.weight",
        "position_embeddings.weight",
        "token_type_embeddings.weight",
        "LayerNorm.weight",
        "LayerNorm.bias",
    ];
    const PARTS: [&str; 8] = [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    ];
    let embeddings = EMBEDDINGS.iter().map(|part| format!("embeddings.{part}"));
    let of_layer = |layer: usize| {
        PARTS.iter().flat_map(move |part| ["weight", "bias"].map(|kind| format!("encoder.layer.{layer}.{part}.{kind}")))
    };
    embeddings.chain((0..spec.layers).flat_map(of_layer)).collect()
}
