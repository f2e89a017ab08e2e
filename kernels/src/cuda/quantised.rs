//! Are products of quantised weights right on this card? Asked once, when it is opened.
//!
//! candle's fast kernels for them are machine code for the architectures that the build named. On any other their launch
//! fails without a word and the output is whatever was in memory. Its slower ones are PTX and run everywhere.

use candle_core::quantized::cuda::set_force_dmmv;
use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Module, Result, Tensor};

use super::device::CardError;

/// Rows and columns of the weights that are tried.
const SHAPE: (usize, usize) = (64, 512);
/// Of the norm of a product: both sides round activations to 8 bits.
const TOLERANCE: f32 = 0.05;

/// Tries the fast kernels, and turns to the slower ones where the fast ones are wrong.
pub(crate) fn settle(device: &Device) -> std::result::Result<(), CardError> {
    set_force_dmmv(false);
    if are_right(device) {
        return Ok(());
    }
    set_force_dmmv(true);
    if are_right(device) { Ok(()) } else { Err(CardError::Wrong) }
}

/// A failed launch counts as a wrong result.
fn are_right(device: &Device) -> bool {
    [GgmlDType::Q4_1, GgmlDType::Q8_0, GgmlDType::Q4K, GgmlDType::Q6K]
        .into_iter()
        // One row and many take different kernels.
        .all(|dtype| [1, 40].into_iter().all(|rows| is_right(device, dtype, rows).unwrap_or(false)))
}

fn is_right(device: &Device, dtype: GgmlDType, rows: usize) -> Result<bool> {
    let noise = |count: usize, shape: (usize, usize)| {
        let value = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0;
        Tensor::from_vec((0..count).map(value).collect::<Vec<_>>(), shape, &Device::Cpu)
    };
    let weights = QTensor::quantize(&noise(SHAPE.0 * SHAPE.1, SHAPE)?, dtype)?;
    let x = noise(rows * SHAPE.1, (rows, SHAPE.1))?;
    let want = x.matmul(&weights.dequantize(&Device::Cpu)?.t()?)?;
    let on_card = QStorage::from_data(weights.data()?, device, dtype)?;
    let product = QMatMul::from_qtensor(QTensor::new(on_card, SHAPE)?)?.forward(&x.to_device(device)?)?;
    let (want, got) = (want.flatten_all()?.to_vec1::<f32>()?, product.flatten_all()?.to_vec1::<f32>()?);
    let norm = (want.iter().map(|x| x * x).sum::<f32>() / want.len() as f32).sqrt();
    Ok(want.iter().zip(got).all(|(want, got)| (want - got).abs() <= TOLERANCE * norm))
}
