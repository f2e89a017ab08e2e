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
        let storage = QStorage::from_data(bytes.to_vec().into(), device, ggml_type(format))?;
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

fn ggml_type(format: Format) -> GgmlDType {
    match format {
        Format::F32 => GgmlDType::F32,
        Format::F16 => GgmlDType::F16,
        Format::Bf16 => GgmlDType::BF16,
        Format::Q4_0 => GgmlDType::Q4_0,
        Format::Q4_1 => GgmlDType::Q4_1,
        Format::Q5_0 => GgmlDType::Q5_0,
        Format::Q5_1 => GgmlDType::Q5_1,
        Format::Q8_0 => GgmlDType::Q8_0,
        Format::Q4K => GgmlDType::Q4K,
        Format::Q5K => GgmlDType::Q5K,
        Format::Q6K => GgmlDType::Q6K,
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
