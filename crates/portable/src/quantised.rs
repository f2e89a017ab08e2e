//! Keys and values in 8 bits, by candle's own operations.
//!
//! A page of a layer is `[2, 32, K·D/32·34]` bytes: of each key, then of each value, one byte an element and then two bytes for
//! the scale of 32 elements. Operations cannot read the bits of an f16, so a scale is kept as its logarithm, in steps of
//! 1/1024 of a power of two: it differs from the true one by less than 0.04 %.

use candle_core::{D, DType, Result, Tensor};
use kernels::attention::Heads;
use models::PAGE_TOKENS;

/// Elements that have a scale in common.
const BLOCK: usize = 32;

/// The largest magnitude of an element in units of its scale; 128 is added.
const MOST: f64 = 127.0;
const ZERO: f64 = 128.0;

/// Steps of the logarithm of a scale for a power of two, and the power at step 0.
const STEPS: f64 = 1024.0;
const LEAST_POWER: f64 = -40.0;

/// Writes rows `[R, K·D]` to places among all rows of all pages of a layer.
///
/// candle has no scatter of bytes on Metal, so runs of rows are copied.
pub(crate) fn write(pages: &Tensor, rows: &Tensor, places: &[u32]) -> Result<()> {
    let rows = quantise(rows)?;
    let width = rows.dim(1)?;
    let pages = pages.reshape((pages.elem_count() / width, width))?;
    let mut start = 0;
    for run in places.chunk_by(|a, b| a + 1 == *b) {
        pages.slice_set(&rows.narrow(0, start, run.len())?.contiguous()?, 0, run[0] as usize)?;
        start += run.len();
    }
    Ok(())
}

/// Rows `[R, K·D]` as bytes, `[R, K·D/32·34]`.
fn quantise(rows: &Tensor) -> Result<Tensor> {
    let (count, width) = rows.dims2()?;
    let blocks = width / BLOCK;
    let x = rows.to_dtype(DType::F32)?.reshape((count, blocks, BLOCK))?;
    let scale = (x.abs()?.max_keepdim(D::Minus1)? / MOST)?.maximum(LEAST_POWER.exp2())?;
    let step = (((scale.log()? / 2f64.ln())? - LEAST_POWER)? * STEPS)?.round()?;
    let bytes = (x.broadcast_div(&power(&step)?)?.clamp(-MOST, MOST)?.round()? + ZERO)?.reshape((count, width))?;
    let step = step.reshape((count, blocks))?;
    let high = (&step / 256.0)?.floor()?;
    let low = (step - (&high * 256.0)?)?;
    Tensor::cat(&[bytes, high, low], 1)?.to_dtype(DType::U8)
}

/// Pages `[P, 2·32·K·D/32·34]` as values, `[P, 2, 32, K·D]` in `f32`.
pub(crate) fn read(pages: &Tensor, heads: Heads) -> Result<Tensor> {
    let (count, width) = (pages.dim(0)?, heads.key_width());
    let blocks = width / BLOCK;
    let rows = pages.reshape((count * 2 * PAGE_TOKENS, width + 2 * blocks))?.to_dtype(DType::F32)?;
    let x = (rows.narrow(1, 0, width)? - ZERO)?.reshape((count * 2 * PAGE_TOKENS, blocks, BLOCK))?;
    let step = ((rows.narrow(1, width, blocks)? * 256.0)? + rows.narrow(1, width + blocks, blocks)?)?;
    x.broadcast_mul(&power(&step)?.unsqueeze(2)?)?.reshape((count, 2, PAGE_TOKENS, width))
}

/// The scale of a step.
fn power(step: &Tensor) -> Result<Tensor> {
    (((step / STEPS)? + LEAST_POWER)? * 2f64.ln())?.exp()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn values_come_back_within_half_a_step_of_their_scale() {
        let heads = Heads { queries: 2, keys: 2, dim: 64 };
        let width = heads.key_width();
        let value = |at: usize| ((at * 7919 % 1009) as f32 - 504.0) * 10f32.powf((at / BLOCK % 9) as f32 - 6.0);
        let values: Vec<f32> = (0..3 * width).map(|at| if at < BLOCK { 0.0 } else { value(at) }).collect();
        let rows = Tensor::from_vec(values.clone(), (3, width), &Device::Cpu).unwrap();
        let bytes = 2 * PAGE_TOKENS * width / BLOCK * 34;
        let pages = Tensor::zeros((2, bytes), DType::U8, &Device::Cpu).unwrap();
        let places = [5, 6, 96];
        write(&pages, &rows, &places).unwrap();
        let read = read(&pages, heads).unwrap().reshape((2 * 2 * PAGE_TOKENS, width)).unwrap();
        for (row, place) in places.into_iter().enumerate() {
            let got = read.get(place as usize).unwrap().to_vec1::<f32>().unwrap();
            let want = &values[row * width..][..width];
            for (got, want) in got.chunks(BLOCK).zip(want.chunks(BLOCK)) {
                let most = want.iter().fold(0f32, |most, x| most.max(x.abs()));
                let near = |(got, want): (&f32, &f32)| (got - want).abs() <= most / 127.0 * 0.51 + 1e-9;
                assert!(got.iter().zip(want).all(near), "{got:?} for {want:?}");
            }
        }
    }
}
