//! An encoder of any size with random bf16 weights made on the GPU, to measure speed without a checkpoint.

use candle_core::{DType, Device, Tensor};

use super::{Encoder, Layer, Norm};
use crate::decoder::noise::matrix;
use crate::error::Result;
use crate::linear::Linear;
use crate::spec::EncoderSpec;

impl Encoder {
    /// Random weights.
    ///
    /// # Errors
    /// If the device is no card or has no room.
    pub fn noise(spec: &EncoderSpec, device: &Device) -> Result<Encoder> {
        Ok(Encoder {
            words: matrix(spec.vocab, spec.hidden, device)?,
            positions: Tensor::randn(0f32, 0.02, (spec.positions, spec.hidden), device)?,
            norm: norm(spec.hidden, device)?,
            layers: (0..spec.layers).map(|_| layer(spec, device)).collect::<Result<_>>()?,
            device: device.clone(),
            spec: spec.clone(),
        })
    }
}

fn norm(len: usize, device: &Device) -> Result<Norm> {
    Ok(Norm { weight: Tensor::ones(len, DType::F32, device)?, bias: Tensor::zeros(len, DType::F32, device)? })
}

fn layer(spec: &EncoderSpec, device: &Device) -> Result<Layer> {
    let (hidden, ffn) = (spec.hidden, spec.ffn);
    let linear = |rows: usize, cols: usize| Linear::new(matrix(rows, cols, device)?, Some(vec![0.01; rows]), device);
    Ok(Layer {
        qkv: linear(3 * hidden, hidden)?,
        output: linear(hidden, hidden)?,
        attention_norm: norm(hidden, device)?,
        up: linear(ffn, hidden)?,
        down: linear(hidden, ffn)?,
        ffn_norm: norm(hidden, device)?,
    })
}
