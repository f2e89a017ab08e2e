//! The interface between the engine and what computes a step, and the kernels as its first implementation.
//!
//! A [`Backend`] loads networks onto its device. The engine gives a [`DecoderNetwork`] ragged batches and the pages of a
//! [`KvCache`], and an [`EncoderNetwork`] texts; it knows neither formats nor devices.

use std::fmt::Debug;

use candle_core::{Device, Tensor};

use crate::adapter::Adapter;
use crate::decoder::{Batch, Decoder, Output};
use crate::encoder::{Encoder, Pass};
use crate::error::{ModelError, Result};
use crate::kv_cache::{KvCache, KvPrecision};
use crate::lora::AdaptedRows;
use crate::spec::{DecoderSpec, EncoderSpec};
use crate::split::{DecoderPart, Part};
use crate::weights::Weights;

/// Computes networks on one device.
pub trait Backend: Debug + Send + Sync {
    /// Loads a decoder for the whole context of its spec.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape than the spec says, or does not fit on the device.
    fn decoder(&self, spec: &DecoderSpec, weights: Weights) -> Result<Box<dyn DecoderNetwork>>;

    /// Loads a part of a decoder.
    ///
    /// # Errors
    /// As [`Backend::decoder`].
    fn part(&self, spec: &DecoderSpec, weights: &Weights, part: &Part) -> Result<Box<dyn DecoderPart>>;

    /// Loads an encoder.
    ///
    /// # Errors
    /// As [`Backend::decoder`].
    fn encoder(&self, spec: &EncoderSpec, weights: Weights) -> Result<Box<dyn EncoderNetwork>>;
}

/// A decoder of some backend, ready to run.
pub trait DecoderNetwork: Debug + Send {
    /// What this checkpoint is.
    fn spec(&self) -> &DecoderSpec;

    /// True if any of it computes on a GPU.
    fn on_gpu(&self) -> bool;

    /// Names the arithmetic: keys and values of networks with different names are not interchangeable.
    fn arithmetic(&self) -> String;

    /// True if it reads and writes KV caches in this precision.
    fn takes_kv(&self, precision: KvPrecision) -> bool;

    /// A KV cache of empty pages, each layer's where the layer runs.
    ///
    /// # Errors
    /// As [`KvCache::new`].
    fn kv_cache(&self, pages: usize, precision: KvPrecision) -> Result<KvCache>;

    /// Loads an adapter; returns its number, counted from 0.
    ///
    /// # Errors
    /// As [`Adapter::check`]; if the device is out of memory.
    fn adapt(&mut self, adapter: &Adapter) -> Result<usize>;

    /// Runs a batch, some of its rows with adapters; writes the keys and values of its rows to the cache.
    ///
    /// # Errors
    /// If a token or a position is out of range, or the computation fails.
    fn forward_adapted(&self, batch: Batch<'_>, adapted: &[AdaptedRows], cache: &KvCache) -> Result<Output>;

    /// Runs a batch without adapters.
    ///
    /// # Errors
    /// As [`DecoderNetwork::forward_adapted`].
    fn forward(&self, batch: Batch<'_>, cache: &KvCache) -> Result<Output> {
        self.forward_adapted(batch, &[], cache)
    }
}

/// An encoder of some backend, ready to run.
pub trait EncoderNetwork: Debug + Send {
    /// What this checkpoint is.
    fn spec(&self) -> &EncoderSpec;

    /// True if it computes on a GPU.
    fn on_gpu(&self) -> bool;

    /// Where its hidden states come out.
    fn output_device(&self) -> &Device;

    /// Starts a pass of sequences of token ids, special tokens included.
    ///
    /// # Errors
    /// If a sequence is empty or longer than the context, a token is outside the vocabulary, or the computation fails.
    fn begin(&self, sequences: &[Vec<u32>]) -> Result<Pass>;

    /// Runs the next half of a layer; the last one returns the hidden states `[N, H]`.
    ///
    /// # Errors
    /// If the computation fails.
    fn advance(&self, pass: &mut Pass) -> Result<Option<Tensor>>;

    /// The hidden states `[N, H]` of sequences, end to end.
    ///
    /// # Errors
    /// As [`EncoderNetwork::begin`].
    fn forward(&self, sequences: &[Vec<u32>]) -> Result<Tensor> {
        let mut pass = self.begin(sequences)?;
        loop {
            if let Some(hidden) = self.advance(&mut pass)? {
                return Ok(hidden);
            }
        }
    }
}

/// The kernels of this project, on the CPU or with CUDA.
#[derive(Debug, Clone)]
pub struct Kernels {
    pub device: Device,
}

impl Kernels {
    /// Refuses a decoder for which there are no kernels on this device.
    fn check(&self, spec: &DecoderSpec) -> Result<()> {
        if self.device.is_cuda() && (spec.post_norms || !matches!(spec.heads.dim, 64 | 128)) {
            let (kind, dim) = (&spec.architecture, spec.heads.dim);
            let what = format!("`{kind}` with heads of {dim} dimensions on a GPU without `--backend portable`");
            return Err(ModelError::Unsupported { what });
        }
        Ok(())
    }
}

impl Backend for Kernels {
    fn decoder(&self, spec: &DecoderSpec, weights: Weights) -> Result<Box<dyn DecoderNetwork>> {
        self.check(spec)?;
        let weights = weights.with_packed(&self.device)?;
        let network = Decoder::load(spec, &weights, spec.context, &self.device)?;
        weights.keep_packed();
        Ok(Box::new(network))
    }

    fn part(&self, spec: &DecoderSpec, weights: &Weights, part: &Part) -> Result<Box<dyn DecoderPart>> {
        self.check(spec)?;
        Ok(Box::new(Decoder::load_part(spec, weights, part, spec.context, &self.device)?))
    }

    fn encoder(&self, spec: &EncoderSpec, weights: Weights) -> Result<Box<dyn EncoderNetwork>> {
        let weights = weights.with_packed(&self.device)?;
        let network = Encoder::load(spec, &weights, &self.device)?;
        weights.keep_packed();
        Ok(Box::new(network))
    }
}

impl EncoderNetwork for Encoder {
    fn spec(&self) -> &EncoderSpec {
        Encoder::spec(self)
    }

    fn on_gpu(&self) -> bool {
        !self.device().is_cpu()
    }

    fn output_device(&self) -> &Device {
        self.device()
    }

    fn begin(&self, sequences: &[Vec<u32>]) -> Result<Pass> {
        Encoder::begin(self, sequences)
    }

    fn advance(&self, pass: &mut Pass) -> Result<Option<Tensor>> {
        Encoder::advance(self, pass)
    }
}
