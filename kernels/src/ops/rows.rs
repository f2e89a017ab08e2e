//! Rows: sums, selection, pooling and unit length.

use std::ops::Range;

use super::storage::floats;
use crate::activation;
use crate::cpu::active_isa;
#[cfg(feature = "cuda")]
use crate::cuda::tensors as cuda;
use crate::embedding::{self, Pool};
use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

/// `x + y`, where `y` is of the same shape or one row: a residual or a bias.
pub fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::add(x, y);
    }
    x.apply_op2_no_bwd(y, &Add)
}

struct Add;

impl CustomOp2 for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, y: &CpuStorage, ly: &Layout) -> Result<(CpuStorage, Shape)> {
        if !lx.dims().ends_with(ly.dims()) || ly.shape().elem_count() == 0 {
            bail!("add: {:?} and {:?}", lx.dims(), ly.dims());
        }
        Ok((CpuStorage::F32(activation::sum(active_isa(), floats(x, lx)?, floats(y, ly)?)), lx.shape().clone()))
    }
}

/// Rows of `x: [N, H]` by their numbers.
pub fn pick_rows(x: &Tensor, rows: &[u32]) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::lookup(x, rows);
    }
    x.index_select(&Tensor::new(rows, x.device())?, 0)
}

/// One vector of length 1 for each of `texts`, ranges of rows of `hidden: [N, H]`; gives `[B, H]`.
pub fn pool_unit(hidden: &Tensor, texts: &[Range<usize>], pool: Pool) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if hidden.device().is_cuda() {
        return cuda::pool_unit(hidden, texts, pool);
    }
    let width = hidden.dim(1)?;
    let values = embedding::pool_unit(&hidden.flatten_all()?.to_vec1()?, width, texts, pool);
    Tensor::from_vec(values, (texts.len(), width), hidden.device())
}

/// Every row of `x: [N, H]` divided by its length.
pub fn unit_rows(x: &Tensor) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::unit_rows(x);
    }
    let values = embedding::unit_rows(&x.flatten_all()?.to_vec1()?, x.dim(1)?);
    Tensor::from_vec(values, x.shape(), x.device())
}

/// Of `weights: [N]` the largest positive one of each token id of a text, 0 elsewhere.
pub fn sparse_max(weights: &Tensor, ids: &[u32], texts: &[Range<usize>]) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if weights.device().is_cuda() {
        return cuda::sparse_max(weights, ids, texts);
    }
    Tensor::new(embedding::sparse_max(&weights.to_vec1()?, ids, texts), weights.device())
}
