//! Products with packed matrices, and low-rank changes to them.

use super::storage::{floats, on_host, stays};
use crate::cpu::active_isa;
use crate::epilogue::Epilogue;
use crate::matmul::{self, LowRank, Matrix, RowEpilogue};
use candle_core::{CpuStorage, CustomOp1, InplaceOp2, Layout, Result, Shape, Tensor, bail};

/// `[R, K] -> [R, N]`: the product with a packed matrix, a bias of `[N]` and an epilogue.
pub fn matmul(x: &Tensor, weight: &Matrix, bias: Option<&Tensor>, epilogue: Epilogue<'_>) -> Result<Tensor> {
    x.apply_op1_no_bwd(&MatMul { weight, bias, epilogue })
}

struct MatMul<'a> {
    weight: &'a Matrix,
    bias: Option<&'a Tensor>,
    epilogue: Epilogue<'a>,
}

impl CustomOp1 for MatMul<'_> {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let MatMul { weight, bias, epilogue } = self;
        let (rows, cols) = layout.shape().dims2()?;
        if cols != weight.cols() || bias.is_some_and(|bias| bias.dims() != [weight.rows()]) {
            let bias = bias.map(Tensor::dims);
            bail!(
                "matmul: {:?} by weights of {} x {} and a bias of {bias:?}",
                layout.dims(),
                weight.rows(),
                weight.cols()
            );
        }
        let bias = bias.map(Tensor::storage_and_layout);
        let bias = bias.as_ref().map(|(storage, layout)| on_host(storage, layout)).transpose()?;
        let x = floats(x, layout)?;
        if let Epilogue::Gelu(to) | Epilogue::SwiGlu(to) = epilogue {
            stays(*to)?;
        }
        let product = |epilogue| weight.product(active_isa(), x, bias, epilogue);
        let (width, out) = match epilogue {
            Epilogue::None => (weight.rows(), product(RowEpilogue::None)),
            Epilogue::Gelu(_) => (weight.rows(), product(RowEpilogue::Gelu)),
            Epilogue::SwiGlu(_) => (weight.rows() / 2, product(RowEpilogue::SwiGlu)),
            Epilogue::Sum(y) => {
                if y.dims() != [rows, weight.rows()] {
                    bail!("matmul: {rows} rows of {} and a residual of {:?}", weight.rows(), y.dims());
                }
                let (storage, layout) = y.storage_and_layout();
                (weight.rows(), product(RowEpilogue::Sum(on_host(&storage, layout)?)))
            }
        };
        Ok((CpuStorage::F32(out), Shape::from((rows, width))))
    }
}

/// `[R, K] -> [R, N]` as [`matmul()`] for selected columns per row: the other columns are `-inf`.
/// `wanted` has an entry for each row, ascending columns or `None` for all.
pub fn matmul_some(x: &Tensor, weight: &Matrix, wanted: &[Option<Vec<u32>>]) -> Result<Tensor> {
    if wanted.iter().all(Option::is_none) {
        return matmul(x, weight, None, Epilogue::None);
    }
    x.apply_op1_no_bwd(&MatMulSome(weight, wanted))
}

struct MatMulSome<'a>(&'a Matrix, &'a [Option<Vec<u32>>]);

impl CustomOp1 for MatMulSome<'_> {
    fn name(&self) -> &'static str {
        "matmul-some"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let MatMulSome(weight, wanted) = self;
        let (rows, cols) = layout.shape().dims2()?;
        if cols != weight.cols() || rows != wanted.len() {
            bail!("matmul-some: {:?} for {} rows by weights of {} columns", layout.dims(), wanted.len(), weight.cols());
        }
        let x = floats(x, layout)?;
        // Rows that need all columns are multiplied together.
        let whole: Vec<usize> = (0..rows).filter(|row| wanted[*row].is_none()).collect();
        let gathered: Vec<f32> = whole.iter().flat_map(|row| x[row * cols..][..cols].to_vec()).collect();
        let products = weight.product(active_isa(), &gathered, None, RowEpilogue::None);
        let mut out = vec![f32::NEG_INFINITY; rows * weight.rows()];
        for (row, products) in whole.iter().zip(products.chunks_exact(weight.rows())) {
            out[row * weight.rows()..][..weight.rows()].copy_from_slice(products);
        }
        for (row, wanted) in wanted.iter().enumerate() {
            let Some(wanted) = wanted else { continue };
            let mut some = vec![0f32; wanted.len()];
            weight.multiply_some(active_isa(), &x[row * cols..][..cols], wanted, &mut some);
            wanted.iter().zip(some).for_each(|(column, value)| out[row * weight.rows() + *column as usize] = value);
        }
        Ok((CpuStorage::F32(out), Shape::from((rows, weight.rows()))))
    }
}

/// Adds low-rank changes to `y: [N, W]`, the product of `x: [N, K]`, in place; each is for the rows with the given numbers.
pub fn add_low_rank(y: &Tensor, x: &Tensor, changes: &[(&LowRank, &[u32])]) -> Result<()> {
    y.inplace_op2(x, &AddLowRank(changes))
}

struct AddLowRank<'a>(&'a [(&'a LowRank, &'a [u32])]);

impl InplaceOp2 for AddLowRank<'_> {
    fn name(&self) -> &'static str {
        "add-low-rank"
    }

    fn cpu_fwd(&self, y: &mut CpuStorage, layout: &Layout, x: &CpuStorage, lx: &Layout) -> Result<()> {
        let (CpuStorage::F32(y), Some((start, end))) = (y, layout.contiguous_offsets()) else {
            bail!("kernels take contiguous f32 tensors")
        };
        matmul::add_low_rank(active_isa(), floats(x, lx)?, &mut y[start..end], self.0);
        Ok(())
    }
}
