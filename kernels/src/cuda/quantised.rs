//! Are candle's products of quantised weights right on this GPU? The portable backend uses them.
//!
//! candle's fast kernels for them are machine code for the architectures that the build named. On any other their launch
//! fails without an error and the output is whatever was in memory. Its slower ones are PTX and run everywhere.

use std::sync::atomic::{AtomicU32, Ordering};

use candle_core::quantized::cuda::set_force_dmmv;
use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Module, Result, Tensor};

/// Rows of the weights that are tried.
const ROWS: usize = 64;
/// Types and columns of the weights that are tried: whole strides of the kernels, and what is none where blocks are small.
const WEIGHTS: [(GgmlDType, usize); 8] = [
    (GgmlDType::Q4_1, 512),
    (GgmlDType::Q4_1, 576),
    (GgmlDType::Q8_0, 512),
    (GgmlDType::Q8_0, 576),
    (GgmlDType::Q4K, 512),
    (GgmlDType::Q6K, 512),
    (GgmlDType::Q2K, 512),
    (GgmlDType::Q3K, 512),
];
/// Rows by which they are multiplied: one, few and many take different kernels.
const BATCHES: [usize; 4] = [1, 5, 40, 300];
/// Of the norm of a product: both sides round activations to 8 bits.
const TOLERANCE: f32 = 0.05;

/// How candle multiplies quantised weights here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantisedProducts {
    /// By its kernels for this architecture.
    Fast,
    /// By its kernels for all architectures: the others are wrong.
    Slow,
    /// Both are wrong.
    Wrong,
}

/// Tries the fast kernels, and selects the slower ones for the process where the fast ones are wrong.
pub fn settle_quantised(device: &Device) -> QuantisedProducts {
    let ways = [(QuantisedProducts::Fast, false), (QuantisedProducts::Slow, true)];
    let right = ways.into_iter().find(|(_, slow)| {
        set_force_dmmv(*slow);
        are_right(device)
    });
    right.map_or(QuantisedProducts::Wrong, |(way, _)| way)
}

/// A failed launch counts as a wrong result.
fn are_right(device: &Device) -> bool {
    WEIGHTS
        .into_iter()
        .all(|(dtype, cols)| BATCHES.into_iter().all(|batch| is_right(device, dtype, cols, batch).unwrap_or(false)))
}

fn is_right(device: &Device, dtype: GgmlDType, cols: usize, batch: usize) -> Result<bool> {
    // Other numbers every time: where nothing is computed, memory may still hold what was right for the last ones.
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let salt = TRIED.fetch_add(1, Ordering::Relaxed).wrapping_mul(1_000_003);
    let noise = |rows: usize| {
        let value = |i: usize| ((i as u32 ^ salt).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0;
        Tensor::from_vec((0..rows * cols).map(value).collect::<Vec<_>>(), (rows, cols), &Device::Cpu)
    };
    let weights = QTensor::quantize(&noise(ROWS)?, dtype)?;
    let x = noise(batch)?;
    let want = x.matmul(&weights.dequantize(&Device::Cpu)?.t()?)?;
    let on_device = QStorage::from_data(weights.data()?, device, dtype)?;
    let product = QMatMul::from_qtensor(QTensor::new(on_device, (ROWS, cols))?)?.forward(&x.to_device(device)?)?;
    let (want, got) = (want.flatten_all()?.to_vec1::<f32>()?, product.flatten_all()?.to_vec1::<f32>()?);
    let norm = (want.iter().map(|x| x * x).sum::<f32>() / want.len() as f32).sqrt();
    Ok(want.iter().zip(got).all(|(want, got)| (want - got).abs() <= TOLERANCE * norm))
}
