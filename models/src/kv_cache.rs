//! The KV cache: keys and values of all layers, in pages of [`PAGE_TOKENS`] tokens.

use std::fmt;

use candle_core::{DType, Device, Tensor};
use half::vec::HalfBitsVecExt;
use half::{bf16, f16};
use kernels::attention::KEYS;

use crate::error::{ModelError, Result};
use crate::spec::DecoderSpec;

/// Tokens in a page of keys and values.
pub const PAGE_TOKENS: usize = KEYS;

/// Keys and values of all layers, in pages.
#[derive(Debug)]
pub struct KvCache {
    layers: Vec<Tensor>,
}

/// How keys and values are kept. Sums are `f32` either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvPrecision {
    #[default]
    F16,
    /// On the processor queries and weights are multiplied in bf16 too, which is faster with AVX512-BF16 and on AMX.
    Bf16,
    /// On the processor only.
    F32,
    /// In 8 bits, with a scale for 32 dimensions of a key or value: 8.5 bits a value. Not by the kernels for GPUs.
    Q8_0,
}

impl KvPrecision {
    fn dtype(self) -> DType {
        match self {
            KvPrecision::F16 => DType::F16,
            KvPrecision::Bf16 => DType::BF16,
            KvPrecision::F32 => DType::F32,
            KvPrecision::Q8_0 => DType::U8,
        }
    }

    /// Elements of a page of one layer: values, or bytes.
    fn page_len(self, spec: &DecoderSpec) -> usize {
        match self {
            KvPrecision::Q8_0 => spec.heads.page().quantised_len(),
            KvPrecision::F16 | KvPrecision::Bf16 | KvPrecision::F32 => spec.heads.page().len(),
        }
    }

    /// Bytes of keys and values that take `halves` bytes in f16.
    pub fn bytes(self, halves: u64) -> u64 {
        match self {
            KvPrecision::F16 | KvPrecision::Bf16 => halves,
            KvPrecision::F32 => 2 * halves,
            KvPrecision::Q8_0 => halves / 64 * 34,
        }
    }
}

impl fmt::Display for KvPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KvPrecision::F16 => "f16",
            KvPrecision::Bf16 => "bf16",
            KvPrecision::F32 => "f32",
            KvPrecision::Q8_0 => "q8_0",
        })
    }
}

impl KvCache {
    /// `pages` empty pages for a network of this shape.
    ///
    /// # Errors
    /// If the device has no room for them, or the heads are no blocks of [`KvPrecision::Q8_0`].
    pub fn new(spec: &DecoderSpec, pages: usize, precision: KvPrecision, device: &Device) -> Result<KvCache> {
        KvCache::on(spec, pages, precision, std::iter::repeat_n(device, spec.layers))
    }

    /// As [`KvCache::new`], with a device for each layer.
    ///
    /// # Errors
    /// As [`KvCache::new`].
    pub fn on<'a>(
        spec: &DecoderSpec,
        pages: usize,
        precision: KvPrecision,
        devices: impl Iterator<Item = &'a Device>,
    ) -> Result<KvCache> {
        if precision == KvPrecision::Q8_0 && !spec.heads.dim.is_multiple_of(32) {
            let what = format!("a KV cache in q8_0 for heads of {} dimensions", spec.heads.dim);
            return Err(ModelError::Unsupported { what });
        }
        let shape = (pages, precision.page_len(spec));
        let layer = |device: &Device| match precision {
            // Zeros that the system gives take no memory before they are used; those that candle writes do.
            KvPrecision::F16 if device.is_cpu() => {
                Tensor::from_vec(vec![0u16; shape.0 * shape.1].reinterpret_into::<f16>(), shape, device)
            }
            KvPrecision::Bf16 if device.is_cpu() => {
                Tensor::from_vec(vec![0u16; shape.0 * shape.1].reinterpret_into::<bf16>(), shape, device)
            }
            KvPrecision::Q8_0 => Tensor::from_vec(vec![0u8; shape.0 * shape.1], shape, device),
            _ => Tensor::zeros(shape, precision.dtype(), device),
        };
        Ok(KvCache { layers: devices.map(layer).collect::<candle_core::Result<_>>()? })
    }

    /// The pages of each layer: `[pages, 2·32·K·D]`, in [`KvPrecision::Q8_0`] more by the bytes of scales. The network that fills a page determines its layout.
    pub fn layers(&self) -> &[Tensor] {
        &self.layers
    }

    /// Copies the keys and values of one page to another.
    ///
    /// # Errors
    /// If there is no such page.
    pub fn copy_page(&self, from: usize, to: usize) -> Result<()> {
        for layer in &self.layers {
            // `copy` would copy the whole storage that the page is a part of.
            let page = layer.narrow(0, from, 1)?.force_contiguous()?;
            layer.slice_set(&page, 0, to)?;
        }
        Ok(())
    }

    /// How keys and values are kept.
    pub fn precision(&self) -> KvPrecision {
        match self.layers.first().map(Tensor::dtype) {
            Some(DType::F32) => KvPrecision::F32,
            Some(DType::BF16) => KvPrecision::Bf16,
            Some(DType::U8) => KvPrecision::Q8_0,
            _ => KvPrecision::F16,
        }
    }

    /// The keys and values of one page as bytes, layer by layer; appended to `out`.
    ///
    /// # Errors
    /// If there is no such page.
    pub fn read_page(&self, page: usize, out: &mut Vec<u8>) -> Result<()> {
        for layer in &self.layers {
            // A copy from a GPU is of the whole storage that a view is a part of.
            let values = layer.narrow(0, page, 1)?.force_contiguous()?.flatten_all()?;
            match layer.dtype() {
                DType::F16 => append(out, &values.to_vec1::<f16>()?, f16::to_le_bytes),
                DType::BF16 => append(out, &values.to_vec1::<bf16>()?, bf16::to_le_bytes),
                DType::U8 => out.extend(values.to_vec1::<u8>()?),
                _ => append(out, &values.to_vec1::<f32>()?, f32::to_le_bytes),
            }
        }
        Ok(())
    }

    /// Fills one page with what [`KvCache::read_page`] gave.
    ///
    /// # Errors
    /// If there is no such page or the bytes are of another size.
    pub fn write_page(&self, page: usize, bytes: &[u8]) -> Result<()> {
        let layer_bytes = bytes.len() / self.layers.len().max(1);
        for (layer, bytes) in self.layers.iter().zip(bytes.chunks_exact(layer_bytes)) {
            let values = Tensor::from_raw_buffer(bytes, layer.dtype(), &[1, layer.dim(1)?], layer.device())?;
            layer.slice_set(&values, 0, page)?;
        }
        Ok(())
    }

    /// Bytes of one page over all layers.
    pub fn page_bytes(spec: &DecoderSpec, precision: KvPrecision) -> usize {
        spec.layers * precision.page_len(spec) * precision.dtype().size_in_bytes()
    }
}

/// Appends the bytes of values. Each is written to a known place: pushing byte by byte is many times as slow.
fn append<T: Copy, const N: usize>(out: &mut Vec<u8>, values: &[T], to_bytes: impl Fn(T) -> [u8; N]) {
    let start = out.len();
    out.resize(start + N * values.len(), 0);
    let (places, _) = out[start..].as_chunks_mut::<N>();
    places.iter_mut().zip(values).for_each(|(place, value)| *place = to_bytes(*value));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers of two pages, the second of which has these values.
    fn cache<T: candle_core::WithDType>(first: T, values: &[T]) -> KvCache {
        let all = [&vec![first; values.len()][..], values].concat();
        let layer = || Tensor::from_slice(&all, (2, values.len()), &Device::Cpu).unwrap();
        KvCache { layers: vec![layer(), layer()] }
    }

    /// The second page as bytes, behind one that is there already, and again after it was written to the first page.
    fn bytes_of(cache: &KvCache) -> Vec<u8> {
        let mut bytes = vec![7];
        cache.read_page(1, &mut bytes).unwrap();
        assert_eq!(bytes.remove(0), 7);
        cache.write_page(0, &bytes).unwrap();
        let mut again = Vec::new();
        cache.read_page(0, &mut again).unwrap();
        assert!(again == bytes, "a page that was written has other bytes");
        bytes
    }

    #[test]
    fn the_bytes_of_a_page_are_the_bits_of_its_values() {
        let halves: Vec<u16> = (0..=u16::MAX).collect();
        let want: Vec<u8> = halves.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let twice = [&want[..], &want].concat();
        let values: Vec<f16> = halves.iter().copied().map(f16::from_bits).collect();
        assert!(bytes_of(&cache(f16::ONE, &values)) == twice, "f16");
        let values: Vec<bf16> = halves.iter().copied().map(bf16::from_bits).collect();
        assert!(bytes_of(&cache(bf16::ONE, &values)) == twice, "bf16");

        // Infinity and NaN among them.
        let bits: Vec<u32> = halves.iter().map(|high| u32::from(*high) << 16 | 0x1234).collect();
        let want: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let values: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
        assert!(bytes_of(&cache(1.0f32, &values)) == [&want[..], &want].concat(), "f32");

        let values: Vec<u8> = (0..=u8::MAX).collect();
        assert!(bytes_of(&cache(1u8, &values)) == [&values[..], &values].concat(), "q8_0");
    }
}
