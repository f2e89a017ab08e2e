//! The norms of a decoder's block, for every implementation of the network.

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
}

impl BlockNorms {
    /// Loads those of block `index`.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape than the spec says.
    pub fn load(spec: &DecoderSpec, weights: &Weights, index: usize, device: &Device) -> Result<BlockNorms> {
        let vector = |part: &str, len: usize| -> Result<Tensor> {
            let name = format!("model.layers.{index}.{part}.weight");
            Ok(Tensor::new(weights.values(&name, &[len])?, device)?)
        };
        let dim = spec.heads.dim;
        let heads = match spec.qk_norm {
            true => Some((vector("self_attn.q_norm", dim)?, vector("self_attn.k_norm", dim)?)),
            false => None,
        };
        Ok(BlockNorms {
            attention: vector("input_layernorm", spec.hidden)?,
            heads,
            feed_forward: vector("post_attention_layernorm", spec.hidden)?,
        })
    }
}
