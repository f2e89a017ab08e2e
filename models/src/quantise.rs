//! Dense weights made smaller while they are loaded.

use std::fmt;
use std::str::FromStr;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use kernels::matmul::Format;
use serde::Deserialize;

use crate::error::Result;

/// What dense weight matrices become; quantised ones stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Quantisation {
    /// 8.5 bits a weight, hardly a difference.
    #[serde(rename = "q8_0")]
    Q8_0,
    /// 4.5 bits a weight. Matrices whose rows are no multiple of 256 become [`Quantisation::Q8_0`].
    #[serde(rename = "q4_k")]
    Q4K,
}

impl Quantisation {
    /// What a matrix of this format with rows of `cols` becomes.
    pub(crate) fn of(self, stored: Format, cols: usize) -> Format {
        let fits = |format: &Format| stored.is_dense() && cols.is_multiple_of(format.block_len());
        let candidates: &[Format] =
            if self == Quantisation::Q4K { &[Format::Q4K, Format::Q8_0] } else { &[Format::Q8_0] };
        candidates.iter().copied().find(fits).unwrap_or(stored)
    }
}

impl fmt::Display for Quantisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Quantisation::Q8_0 => "q8_0",
            Quantisation::Q4K => "q4_k",
        })
    }
}

impl FromStr for Quantisation {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let known = [Quantisation::Q8_0, Quantisation::Q4K].into_iter().find(|known| known.to_string() == name);
        known.ok_or_else(|| format!("`{name}` is not one of q8_0, q4_k"))
    }
}

/// Rows in the blocks of a quantised format, as a GGUF file would hold them.
///
/// # Errors
/// If the format has no quantiser here.
pub(crate) fn quantise(format: Format, values: Vec<f32>) -> Result<Vec<u8>> {
    let dtype = if format == Format::Q4K { GgmlDType::Q4K } else { GgmlDType::Q8_0 };
    let len = values.len();
    let quantised = QTensor::quantize(&Tensor::from_vec(values, len, &Device::Cpu)?, dtype)?;
    Ok(quantised.data()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_matrix_becomes_what_its_width_allows() {
        let check = |quantisation: Quantisation, stored, cols, expect| {
            assert_eq!(quantisation.of(stored, cols), expect, "{quantisation} of {stored:?} with {cols}");
        };
        check(Quantisation::Q8_0, Format::Bf16, 896, Format::Q8_0);
        check(Quantisation::Q4K, Format::Bf16, 1536, Format::Q4K);
        check(Quantisation::Q4K, Format::F32, 896, Format::Q8_0);
        check(Quantisation::Q4K, Format::F16, 20, Format::F16);
        check(Quantisation::Q4K, Format::Q8_0, 1536, Format::Q8_0);
    }

    #[test]
    fn what_is_lost_is_small() {
        let values: Vec<f32> = (0u32..4096).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 8e6 - 1.0).collect();
        let check = |format: Format, bytes: usize, most: f64| {
            let quantised = quantise(format, values.clone()).unwrap();
            let mut back = vec![0f32; values.len()];
            format.dequantise(&quantised, &mut back);
            let square = |x: f32| f64::from(x).powi(2);
            let lost: f64 = values.iter().zip(&back).map(|(value, back)| square(value - back)).sum();
            let lost = (lost / values.iter().map(|value| square(*value)).sum::<f64>()).sqrt();
            println!("{format:?} loses {lost:.4}");
            assert_eq!(quantised.len(), bytes);
            assert!(lost > 0.0 && lost < most, "{format:?} loses {lost}");
        };
        // The values lie evenly: steps of 1/127 and 1/15 of a block's width lose about 0.3 of a step.
        check(Format::Q8_0, 4096 / 32 * 34, 0.006);
        check(Format::Q4K, 4096 / 256 * 144, 0.08);
    }
}
