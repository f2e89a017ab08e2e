//! The norms of a decoder, for every implementation of the network.

use candle_core::{Device, Tensor};

use crate::error::Result;
use crate::spec::DecoderSpec;
use crate::weights::Weights;

/// The weights of the norms of a block.
#[derive(Debug)]
pub struct BlockNorms {
    /// `[H]`, before the attention.
    pub attention: Tensor,
    /// Of the query and key heads, `[D]` each, where the architecture has them.
    pub heads: Option<(Tensor, Tensor)>,
    /// `[H]`, before the feed-forward network.
    pub feed_forward: Tensor,
    /// `[H]`, of the outputs of attention and feed-forward network, where the architecture has them.
    pub post: Option<PostNorms>,
}

/// The weights of the norms of a block's outputs.
#[derive(Debug)]
pub struct PostNorms {
    pub attention: Tensor,
    pub feed_forward: Tensor,
}

impl BlockNorms {
    /// Loads those of block `index`.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape than the spec says.
    pub fn load(spec: &DecoderSpec, weights: &Weights, index: usize, device: &Device) -> Result<BlockNorms> {
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        let hidden = |part: &str| norm(spec, weights, &name(part), spec.hidden, 1.0, device);
        let of_heads = |part: &str, scale: f32| norm(spec, weights, &name(part), spec.heads.dim, scale, device);
        let heads = match spec.qk_norm {
            // Rotation and dot product are linear, so the scale of the scores goes into the queries.
            true => Some((of_heads("self_attn.q_norm", spec.score_scale)?, of_heads("self_attn.k_norm", 1.0)?)),
            false => None,
        };
        let (feed_forward, post) = if spec.post_norms {
            let attention = hidden("post_attention_layernorm")?;
            let feed_forward = hidden("post_feedforward_layernorm")?;
            (hidden("pre_feedforward_layernorm")?, Some(PostNorms { attention, feed_forward }))
        } else {
            (hidden("post_attention_layernorm")?, None)
        };
        Ok(BlockNorms { attention: hidden("input_layernorm")?, heads, feed_forward, post })
    }
}

/// The weight of the norm of the last block's output: `[H]`.
///
/// # Errors
/// As [`BlockNorms::load`].
pub fn last_norm(spec: &DecoderSpec, weights: &Weights, device: &Device) -> Result<Tensor> {
    norm(spec, weights, "model.norm.weight", spec.hidden, 1.0, device)
}

fn norm(spec: &DecoderSpec, weights: &Weights, name: &str, len: usize, scale: f32, device: &Device) -> Result<Tensor> {
    let mut values = weights.values(name, &[len])?;
    if (spec.norm_offset, scale) != (0.0, 1.0) {
        values.iter_mut().for_each(|value| *value = (*value + spec.norm_offset) * scale);
    }
    Ok(Tensor::new(values, device)?)
}
