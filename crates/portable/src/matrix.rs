//! Frozen weight matrices in the formats that candle multiplies on any device.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Module, Result, Tensor};
use kernels::matmul::Format;

/// A matrix `[rows, cols]`; products and rows are `f32`.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    product: QMatMul,
    /// Products of one row are computed with two, of which one is dropped.
    doubles_rows: bool,
}

/// How 16-bit weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halves {
    /// Expanded to `f32`.
    Expanded,
    /// As they are. candle's Metal product of such a matrix with one row reads the first row of the matrix only
    /// (`kernel_mul_mv_f16_f32` with a stride of 0; there is none for bf16), so one row is multiplied as two.
    Stored,
}

impl Halves {
    pub fn on(device: &Device) -> Halves {
        if device.is_metal() { Halves::Stored } else { Halves::Expanded }
    }
}

impl Matrix {
    /// Puts the bytes of all rows on a device.
    ///
    /// # Errors
    /// If the bytes are of another size, or the device is out of memory.
    pub fn load(
        format: Format,
        shape: (usize, usize),
        bytes: &[u8],
        halves: Halves,
        device: &Device,
    ) -> Result<Matrix> {
        let is_stored = match format {
            Format::F32 => false,
            Format::F16 | Format::Bf16 => halves == Halves::Stored,
            _ => true,
        };
        if !is_stored {
            let mut values = vec![0f32; shape.0 * shape.1];
            format.dequantise(bytes, &mut values);
            let product = QMatMul::Tensor(Tensor::from_vec(values, shape, device)?);
            return Ok(Matrix { product, doubles_rows: false });
        }
        // candle needs aligned bytes; the allocator aligns those of a vector.
        let bytes = format.as_q8_0(bytes).unwrap_or_else(|| bytes.to_vec());
        let dtype = format.candle_type().unwrap_or(GgmlDType::Q8_0);
        let storage = QStorage::from_data(bytes.into(), device, dtype)?;
        let product = QMatMul::QTensor(Arc::new(QTensor::new(storage, shape)?));
        Ok(Matrix { product, doubles_rows: matches!(format, Format::F16 | Format::Bf16) })
    }

    /// `x Wᵀ`: `[N, cols] -> [N, rows]`.
    ///
    /// # Errors
    /// If the width of `x` is another.
    pub fn product(&self, x: &Tensor) -> Result<Tensor> {
        // Quantised products read contiguous f32 without a check of the type on Metal.
        let x = x.contiguous()?;
        if self.doubles_rows && x.dim(0)? == 1 {
            return self.product.forward(&Tensor::cat(&[&x, &x], 0)?)?.narrow(0, 0, 1)?.contiguous();
        }
        self.product.forward(&x)
    }

    /// Rows of the matrix: `[N] -> [N, cols]`.
    ///
    /// # Errors
    /// If there is no such row.
    pub fn lookup(&self, rows: &Tensor) -> Result<Tensor> {
        self.product.embedding(rows)
    }
}

/// `x Wᵀ + b`.
#[derive(Debug)]
pub(crate) struct Linear {
    pub matrix: Matrix,
    pub bias: Option<Tensor>,
}

impl Linear {
    /// `[N, cols] -> [N, rows]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.matrix.product(x)?;
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    #[test]
    fn formats_that_candle_lacks_or_few_files_have_are_multiplied() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../../tests/golden/blocks.json")).unwrap();
        let formats =
            [("Q2_K", Format::Q2K), ("Q3_K", Format::Q3K), ("IQ4_NL", Format::Iq4Nl), ("IQ4_XS", Format::Iq4Xs)];
        let x = Tensor::from_vec(values(512), (2, 256), &Device::Cpu).unwrap();
        for (name, format) in formats {
            let case = golden["formats"].as_array().unwrap().iter().find(|case| case["format"] == name).unwrap();
            let rows = case["rows"].as_array().unwrap().iter().map(|row| row.as_str().unwrap());
            let hex = rows.collect::<String>();
            let bytes: Vec<u8> =
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
            let rows = case["values"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
            let wide: Vec<f32> = rows.map(|x| x.as_f64().unwrap() as f32).collect();
            let wide = Tensor::from_vec(wide, (2, 256), &Device::Cpu).unwrap();
            let matrix = Matrix::load(format, (2, 256), &bytes, Halves::Expanded, &Device::Cpu).unwrap();
            let (got, want) = (matrix.product(&x).unwrap(), x.matmul(&wide.t().unwrap()).unwrap());
            // Activations are int8: 0.4 % of the lengths of both factors, which add up to at most as much.
            let length = |x: &Tensor| x.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap().sqrt();
            let error = length(&(got - want).unwrap());
            assert!(error <= 0.004 * length(&x) * length(&wide), "{name}: {error}");
            let ids = Tensor::new(&[1u32, 0], &Device::Cpu).unwrap();
            let found = matrix.lookup(&ids).unwrap();
            let want = wide.index_select(&ids, 0).unwrap();
            assert!(length(&(found - &want).unwrap()) <= 0.0005 * length(&want), "{name}");
        }
    }

    #[test]
    fn one_row_times_stored_halves_is_the_first_of_two() {
        let (shape, device) = ((24, 64), Device::Cpu);
        let weights = values(24 * 64);
        let x = Tensor::from_vec(values(128), (2, 64), &device).unwrap();
        for format in [Format::F16, Format::Bf16] {
            let bytes: Vec<u8> = match format {
                Format::F16 => weights.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect(),
                _ => weights.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect(),
            };
            let load = |halves| Matrix::load(format, shape, &bytes, halves, &device).unwrap();
            let (stored, expanded) = (load(Halves::Stored), load(Halves::Expanded));
            assert!(stored.doubles_rows && !expanded.doubles_rows);
            let rows = |y: Tensor| y.to_vec2::<f32>().unwrap();
            let both = rows(stored.product(&x).unwrap());
            let first = stored.product(&x.narrow(0, 0, 1).unwrap()).unwrap();
            assert_eq!(first.dims(), [1, 24]);
            assert_eq!(rows(first)[0], both[0]);
            // On the CPU candle rounds the other factor as well.
            let want = rows(expanded.product(&x).unwrap());
            for (got, want) in both.iter().flatten().zip(want.iter().flatten()) {
                assert!((got - want).abs() < 0.1, "{got}, want {want}");
            }
            let ids = Tensor::new(&[5u32, 23], &device).unwrap();
            assert_eq!(rows(stored.lookup(&ids).unwrap()), rows(expanded.lookup(&ids).unwrap()));
        }
    }
}
