//! A decoder of any size with random bf16 weights made on the GPU, to measure speed without a checkpoint.

use candle_core::{DType, Device, Tensor};
use kernels::cuda::DeviceMatrix;
use kernels::weight::Weight;

use super::{Decoder, FeedForward, Head, Layer};
use crate::error::{ModelError, Result};
use crate::linear::Linear;
use crate::rotary;
use crate::spec::DecoderSpec;
use crate::split::Part;

impl Decoder {
    /// Random weights for `context` positions, small enough that values stay numbers.
    ///
    /// # Errors
    /// If the device is no card or has no room.
    pub fn noise(spec: &DecoderSpec, context: usize, device: &Device) -> Result<Decoder> {
        let layers = (0..spec.layers).map(|index| layer(spec, index, device)).collect::<Result<_>>()?;
        let head = (!spec.tied).then(|| matrix(spec.vocab, spec.hidden, device)).transpose()?;
        Ok(Decoder {
            part: Part::whole(spec),
            table: Some(matrix(spec.vocab, spec.hidden, device)?),
            layers,
            head: Some(Head { norm: Tensor::ones(spec.hidden, DType::F32, device)?, matrix: head }),
            rope: rotary::table(&spec.rope, spec.heads.dim, context),
            window_rope: spec.window_rope().map(|rope| rotary::table(rope, spec.heads.dim, context)),
            adapters: Vec::new(),
            device: device.clone(),
            spec: spec.clone(),
        })
    }
}

/// Normal weights of the usual size, some rows at a time so that the `f32` draft stays small.
pub(crate) fn matrix(rows: usize, cols: usize, device: &Device) -> Result<Weight> {
    const ROWS: usize = 16_384;
    let part = |first: usize| -> candle_core::Result<Tensor> {
        Tensor::randn(0f32, 0.02, (ROWS.min(rows - first), cols), device)?.to_dtype(DType::BF16)
    };
    let parts = (0..rows).step_by(ROWS).map(part).collect::<candle_core::Result<Vec<_>>>()?;
    Ok(Weight::Device(DeviceMatrix::from_tensor(Tensor::cat(&parts, 0)?)?))
}

fn layer(spec: &DecoderSpec, index: usize, device: &Device) -> Result<Layer> {
    if spec.post_norms {
        return Err(ModelError::Unsupported { what: "random weights of a network with norms of outputs".into() });
    }
    let (hidden, heads) = (spec.hidden, spec.heads);
    let linear = |rows, cols| Linear::new(matrix(rows, cols, device)?, None, device);
    let ones = |len: usize| Tensor::ones(len, DType::F32, device);
    let width = heads.query_width() + 2 * heads.key_width();
    let bias = spec.qkv_bias.then(|| vec![0.01; width]);
    let qk_norm = spec.qk_norm.then(|| Ok::<_, candle_core::Error>((ones(heads.dim)?, ones(heads.dim)?)));
    Ok(Layer {
        attention_norm: ones(hidden)?,
        qkv: Linear::new(matrix(width, hidden, device)?, bias, device)?,
        qk_norm: qk_norm.transpose()?,
        window: spec.window_of(index),
        output: linear(hidden, heads.query_width())?,
        ffn_norm: ones(hidden)?,
        post_norms: None,
        feed_forward: FeedForward::Dense { gate_up: linear(2 * spec.ffn, hidden)?, down: linear(hidden, spec.ffn)? },
    })
}
