//! The portable backend of the engine: decoder and encoder on plain candle operations, on any of candle's devices.

use candle_core::Device;
use models::{Backend, DecoderNetwork, DecoderPart, DecoderSpec, EncoderNetwork, EncoderSpec, Part, Result, Weights};

use crate::decoder::PagedDecoder;
use crate::encoder::PortableEncoder;
use crate::loader::Loader;

/// Computes on a device of candle's: the CPU, a GPU with CUDA, or a Mac's with Metal.
#[derive(Debug, Clone)]
pub struct Portable {
    pub device: Device,
}

impl Backend for Portable {
    fn decoder(&self, spec: &DecoderSpec, weights: Weights) -> Result<Box<dyn DecoderNetwork>> {
        let loader = Loader { weights: &weights, device: &self.device };
        Ok(Box::new(PagedDecoder::load(spec, &Part::whole(spec), &loader)?))
    }

    fn part(&self, spec: &DecoderSpec, weights: &Weights, part: &Part) -> Result<Box<dyn DecoderPart>> {
        Ok(Box::new(PagedDecoder::load(spec, part, &Loader { weights, device: &self.device })?))
    }

    fn encoder(&self, spec: &EncoderSpec, weights: Weights) -> Result<Box<dyn EncoderNetwork>> {
        Ok(Box::new(PortableEncoder::load(spec, &Loader { weights: &weights, device: &self.device })?))
    }
}
