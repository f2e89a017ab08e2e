//! The time of products with weights in several formats, by rows, and of a launch.

use anyhow::{Context, Result};
use candle_core::{DType, Device, Tensor};
use kernels::cuda::{DeviceMatrix, Kept};
use kernels::epilogue::Epilogue;
use kernels::matmul::Format;
use kernels::ops;

use crate::ceiling::seconds;
use crate::report::Report;

const PART: &str = "product";
/// Output and input columns: the output projection, gate and up, and the down projection of a 7B model.
const SHAPES: [(usize, usize); 3] = [(3584, 3584), (37_888, 3584), (3584, 18_944)];
const ROWS: [usize; 10] = [1, 4, 8, 16, 32, 64, 128, 256, 512, 2048];
/// All matrices of a measurement together: several times the caches, so that weights come from memory.
const BYTES: usize = 300 << 20;
const LAUNCHES: usize = 2000;

/// Measures all.
pub fn measure(report: &mut Report, device: &Device) -> Result<()> {
    let (x, weight) = (Tensor::ones((1, 3584), DType::F32, device)?, Tensor::ones(3584, DType::F32, device)?);
    let took = seconds(device, 3, || {
        (0..LAUNCHES).try_for_each(|_| ops::rms_norm(&x, &weight, 1e-6, DType::BF16).map(drop))?;
        Ok(())
    })?;
    report.measured(PART, "a launch, RMSNorm of one row", took / LAUNCHES as f64 * 1e6, "us");
    for format in [Format::Bf16, Format::Q4K, Format::Q6K, Format::Q8_0] {
        for shape in SHAPES {
            one(report, device, format, shape)?;
        }
    }
    Ok(())
}

fn one(report: &mut Report, device: &Device, format: Format, (n, k): (usize, usize)) -> Result<()> {
    let len = n * format.row_bytes(k).context("whole blocks")?;
    // Small numbers as quants, scales and bf16.
    let bytes: Vec<u8> = (0..len).map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 26) as u8).collect();
    let load = |_| Ok(DeviceMatrix::load(format, (n, k), &bytes, |row| row, Kept::Stored, device)?);
    let matrices = (0..BYTES.div_ceil(len)).map(load).collect::<Result<Vec<_>>>()?;
    for rows in ROWS {
        let x = Tensor::randn(0f32, 1.0, (rows, k), device)?.to_dtype(DType::BF16)?;
        let took = seconds(device, 5, || {
            matrices.iter().try_for_each(|matrix| matrix.product(&x, None, Epilogue::None).map(drop))?;
            Ok(())
        })? / matrices.len() as f64;
        let name = format!("{format:?} {n}x{k} by {rows}");
        report.measured(PART, format!("{name}, weights"), len as f64 / took / 1e9, "GB/s");
        report.measured(PART, format!("{name}, rate"), 2.0 * (rows * n * k) as f64 / took / 1e12, "TFLOP/s");
    }
    Ok(())
}
