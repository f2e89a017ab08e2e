//! A low-rank change (LoRA) on its device: packed for the CPU kernels, or tensors for candle's own operations.

use candle_core::{DType, Device, Result, Tensor, bail};

use crate::matmul::{LowRank, LowRankPart, MatrixError};
use crate::ops;

/// The change of a stack of projections, `y += s · (x Aᵀ) Bᵀ` for each of them.
#[derive(Debug)]
pub struct Change(Kept);

#[derive(Debug)]
enum Kept {
    Packed(LowRank),
    Tensors(Tensors),
}

/// What other devices than the CPU multiply.
#[derive(Debug)]
struct Tensors {
    width: usize,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    first: usize,
    /// `[K, r]`, times the scale.
    a: Tensor,
    /// `[r, N]`
    b: Tensor,
}

impl Change {
    /// Loads the change of a stack with inputs of `cols` and outputs of `width` values.
    ///
    /// # Errors
    /// If a matrix does not have the shape that its rank says, or the device is out of memory.
    ///
    /// # Panics
    /// If a part reaches beyond the outputs or has no rank.
    pub fn load(cols: usize, width: usize, parts: &[LowRankPart<'_>], device: &Device) -> Result<Change> {
        if device.is_cpu() {
            let packed = LowRank::pack(cols, width, parts);
            return Ok(Change(Kept::Packed(packed.map_err(|error: MatrixError| candle_core::Error::wrap(error))?)));
        }
        Ok(Change(Kept::Tensors(Tensors::load(cols, width, parts, device)?)))
    }

    /// Bytes of the matrices.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Kept::Packed(packed) => packed.bytes(),
            Kept::Tensors(tensors) => {
                let values = |part: &Part| part.a.elem_count() + part.b.elem_count();
                tensors.parts.iter().map(values).sum::<usize>() * size_of::<f32>()
            }
        }
    }
}

impl Tensors {
    fn load(cols: usize, width: usize, parts: &[LowRankPart<'_>], device: &Device) -> Result<Tensors> {
        let part = |part: &LowRankPart<'_>| {
            let outputs = part.b.len() / part.rank;
            let a = Tensor::from_slice(part.a, (part.rank, cols), device)?.t()?.contiguous()?;
            let b = Tensor::from_slice(part.b, (outputs, part.rank), device)?.t()?.contiguous()?;
            Ok(Part { first: part.first, a: (a * f64::from(part.scale))?, b })
        };
        Ok(Tensors { width, parts: parts.iter().map(part).collect::<Result<_>>()? })
    }

    /// `y` with the change added to some rows.
    fn add(&self, y: &Tensor, x: &Tensor, rows: &[u32]) -> Result<Tensor> {
        let ids = Tensor::new(rows, y.device())?;
        let x = x.index_select(&ids, 0)?.to_dtype(DType::F32)?;
        let zeros = |width: usize| Tensor::zeros((rows.len(), width), DType::F32, y.device());
        let (mut columns, mut at) = (Vec::new(), 0);
        for part in &self.parts {
            if part.first > at {
                columns.push(zeros(part.first - at)?);
            }
            columns.push(x.matmul(&part.a)?.matmul(&part.b)?);
            at = part.first + part.b.dim(1)?;
        }
        if self.width > at {
            columns.push(zeros(self.width - at)?);
        }
        y.index_add(&ids, &Tensor::cat(&columns, 1)?.to_dtype(y.dtype())?, 0)
    }
}

/// `y: [N, W]`, the product of `x: [N, K]`, with changes added; each is for the rows with the given numbers, and no row has two.
/// On the CPU other rows keep their bits, and the tensor is changed in place.
///
/// # Errors
/// If the computation fails.
pub fn add(y: Tensor, x: &Tensor, changes: &[(&Change, &[u32])]) -> Result<Tensor> {
    let mut packed = Vec::new();
    let mut sum = y;
    for (change, rows) in changes {
        match &change.0 {
            Kept::Packed(change) => packed.push((change, *rows)),
            Kept::Tensors(tensors) => sum = tensors.add(&sum, x, rows)?,
        }
    }
    if let Some((first, _)) = packed.first() {
        if sum.dim(1)? != first.width() || x.dim(1)? != first.cols() {
            bail!("low-rank: a change of {} x {} for {:?} and {:?}", first.width(), first.cols(), sum.dims(), x.dims());
        }
        ops::add_low_rank(&sum, x, &packed)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_give_the_change_of_the_kernels() {
        let numbers = |count: usize, seed: usize| -> Vec<f32> {
            (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1000.0 - 1.0).collect()
        };
        let (cols, width, rank) = (24, 40, 3);
        let matrices = [numbers(rank * cols, 1), numbers(10 * rank, 2), numbers(rank * cols, 3), numbers(12 * rank, 4)];
        let [a, b, c, d] = &matrices;
        let parts =
            [LowRankPart { first: 4, rank, scale: 2.0, a, b }, LowRankPart { first: 20, rank, scale: 0.5, a: c, b: d }];
        let device = Device::Cpu;
        let tensors = Change(Kept::Tensors(Tensors::load(cols, width, &parts, &device).unwrap()));
        let packed = Change::load(cols, width, &parts, &device).unwrap();
        let x = Tensor::from_vec(numbers(5 * cols, 5), (5, cols), &device).unwrap();
        let y = || Tensor::from_vec(numbers(5 * width, 6), (5, width), &device).unwrap();
        let sum = |change: &Change| add(y(), &x, &[(change, &[1, 2, 4])]).unwrap().to_vec2::<f32>().unwrap();
        let (by_tensors, by_kernels, before) = (sum(&tensors), sum(&packed), y().to_vec2::<f32>().unwrap());
        for (a, b) in by_tensors.iter().flatten().zip(by_kernels.iter().flatten()) {
            assert!((a - b).abs() < 1e-5, "{a} and {b}");
        }
        assert_eq!((&by_kernels[0], &by_kernels[3]), (&before[0], &before[3]));
        assert_ne!(by_kernels[1], before[1]);
    }
}
