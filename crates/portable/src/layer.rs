//! A block of the network: its weights, and its forward pass by plain operations.

use std::sync::Arc;

use candle_core::{Device, Tensor};
use kernels::attention::Heads;
use kernels::training::HalfMatrix;
use kernels::training::attention::Sequence;
use models::adapter::Projection;
use models::{BlockNorms, DecoderSpec, Result, Weights, interleaved_row};

use crate::lora::{LoraLayer, LoraPair};
use crate::plain;
use crate::values::with_values;

/// The weights of a block.
#[derive(Debug)]
pub(crate) struct Layer {
    pub attention_norm: Tensor,
    pub qkv: Frozen,
    /// Norms of the query and key heads, `[D]` each.
    pub qk_norm: Option<(Tensor, Tensor)>,
    /// Latest tokens that it attends to, where sequences can be longer.
    pub window: Option<usize>,
    pub output: Frozen,
    pub ffn_norm: Tensor,
    pub gate_up: Frozen,
    pub down: Frozen,
}

/// A weight matrix `[out, in]` and its bias, without gradient.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub weight: FrozenWeight,
    pub bias: Option<Tensor>,
}

/// A weight matrix in `f32`, or rounded to bf16.
#[derive(Debug)]
pub(crate) enum FrozenWeight {
    Full(Tensor),
    Half(HalfMatrix),
}

impl Frozen {
    /// Widths of its output and its input.
    pub fn shape(&self) -> candle_core::Result<(usize, usize)> {
        match &self.weight {
            FrozenWeight::Full(weight) => weight.dims2(),
            FrozenWeight::Half(matrix) => Ok(matrix.shape()),
        }
    }

    fn forward(&self, x: &Tensor, lora: Option<&LoraPair>) -> candle_core::Result<Tensor> {
        match &self.weight {
            FrozenWeight::Full(weight) => plain::project(x, weight, self.bias.as_ref(), lora),
            FrozenWeight::Half(_) => candle_core::bail!("candle's operations with weights that were rounded to bf16"),
        }
    }

    /// Rounds the weights to bf16.
    pub fn round(&mut self) -> candle_core::Result<()> {
        if let FrozenWeight::Full(weight) = &self.weight {
            let (rows, cols) = weight.dims2()?;
            let matrix = with_values(weight, |weight| Ok(HalfMatrix::new(weight, rows, cols)))?;
            self.weight = FrozenWeight::Half(matrix);
        }
        Ok(())
    }
}

impl Layer {
    /// Block `index` of a checkpoint, for sequences of up to `positions` tokens.
    pub fn load(
        spec: &DecoderSpec,
        weights: &Weights,
        index: usize,
        positions: usize,
        device: &Device,
    ) -> Result<Layer> {
        // Projections with the same input are stacked on each other.
        let stack = |projections: &[Projection]| -> Result<Frozen> {
            let (mut matrix, mut bias, mut width) = (Vec::new(), Vec::new(), 0);
            for projection in projections {
                let ((rows, cols), name) = (projection.shape(spec), projection.in_layer(index));
                let values = weights.values(&format!("{name}.weight"), &[rows, cols])?;
                let interleaved = projection.is_interleaved(spec);
                let source = |row: usize| if interleaved { interleaved_row(row, spec.heads.dim) } else { row };
                (0..rows).for_each(|row| matrix.extend_from_slice(&values[source(row) * cols..][..cols]));
                if projection.has_bias(spec) {
                    let values = weights.values(&format!("{name}.bias"), &[rows])?;
                    bias.extend((0..rows).map(|row| values[source(row)]));
                }
                width = cols;
            }
            let rows = matrix.len() / width;
            Ok(Frozen {
                weight: FrozenWeight::Full(Tensor::from_vec(matrix, (rows, width), device)?),
                bias: (!bias.is_empty()).then(|| Tensor::new(bias, device)).transpose()?,
            })
        };
        let norms = BlockNorms::load(spec, weights, index, device)?;
        Ok(Layer {
            attention_norm: norms.attention,
            qkv: stack(&[Projection::Query, Projection::Key, Projection::Value])?,
            qk_norm: norms.heads,
            window: spec.window_of(index).filter(|window| *window < positions),
            output: stack(&[Projection::Output])?,
            ffn_norm: norms.feed_forward,
            gate_up: stack(&[Projection::Gate, Projection::Up])?,
            down: stack(&[Projection::Down])?,
        })
    }

    /// The block by operations of candle's, which have gradients.
    pub fn forward(
        &self,
        hidden: &Tensor,
        sequences: &Arc<[Sequence]>,
        lora: Option<&LoraLayer>,
        spec: &DecoderSpec,
        angles: &(Tensor, Tensor),
    ) -> candle_core::Result<Tensor> {
        let pair = |pick: fn(&LoraLayer) -> Option<&LoraPair>| lora.and_then(pick);
        let (heads, epsilon) = (spec.heads, spec.norm_epsilon);
        let x = plain::rms_norm(hidden, &self.attention_norm, epsilon)?;
        let qkv = self.qkv.forward(&x, pair(|lora| lora.qkv.as_ref()))?;
        let qkv = self.norm_heads(qkv, heads, epsilon)?;
        let attended = plain::attention(&qkv, heads, angles, sequences, self.window)?;
        let hidden = (hidden + self.output.forward(&attended, pair(|lora| lora.output.as_ref()))?)?;
        let x = plain::rms_norm(&hidden, &self.ffn_norm, epsilon)?;
        let x = plain::swiglu(&self.gate_up.forward(&x, pair(|lora| lora.gate_up.as_ref()))?)?;
        hidden + self.down.forward(&x, pair(|lora| lora.down.as_ref()))?
    }

    /// RMSNorm of every query and key head, where the architecture has it.
    fn norm_heads(&self, qkv: Tensor, heads: Heads, epsilon: f32) -> candle_core::Result<Tensor> {
        let Some((q_norm, k_norm)) = &self.qk_norm else { return Ok(qkv) };
        let (rows, queries, keys) = (qkv.dim(0)?, heads.query_width(), heads.key_width());
        let normed = |from: usize, width: usize, weight: &Tensor| {
            let part = qkv.narrow(1, from, width)?.contiguous()?.reshape((rows * width / heads.dim, heads.dim))?;
            plain::rms_norm(&part, weight, epsilon)?.reshape((rows, width))
        };
        let q = normed(0, queries, q_norm)?;
        let k = normed(queries, keys, k_norm)?;
        Tensor::cat(&[q, k, qkv.narrow(1, queries + keys, keys)?], 1)?.contiguous()
    }
}
