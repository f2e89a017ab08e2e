//! The GPU's limits: memory copies, and bf16 products by cuBLAS.

use std::time::Instant;

use anyhow::Result;
use candle_core::{DType, Device, Tensor};

use crate::report::Report;

const PART: &str = "ceiling";
/// Read and written.
pub const COPY: &str = "copy";
pub const PRODUCT: &str = "bf16 product 8192x8192x8192";

/// Seconds that `work` takes, the best of some runs after a first one that is not counted.
pub fn seconds(device: &Device, runs: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    device.synchronize()?;
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let started = Instant::now();
        work()?;
        device.synchronize()?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Measures both.
pub fn measure(report: &mut Report, device: &Device) -> Result<()> {
    const BYTES: usize = 2 << 30;
    let from = Tensor::zeros(BYTES / 4, DType::F32, device)?;
    let took = seconds(device, 5, || Ok(from.copy().map(drop)?))?;
    report.measured(PART, COPY, 2.0 * BYTES as f64 / took / 1e9, "GB/s");
    drop(from);
    let side = 8192;
    let matrix = || Tensor::randn(0f32, 1.0, (side, side), device)?.to_dtype(DType::BF16);
    let (a, b) = (matrix()?, matrix()?);
    let took = seconds(device, 5, || Ok(a.matmul(&b).map(drop)?))?;
    report.measured(PART, PRODUCT, 2.0 * (side as f64).powi(3) / took / 1e12, "TFLOP/s");
    Ok(())
}
