//! Sampling from rows of logits.

use std::sync::{Mutex, PoisonError};

use crate::cpu::active_isa;
#[cfg(feature = "cuda")]
use crate::cuda::tensors as cuda;
use crate::sample::{self, Draw, Drawn};
use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Tensor, bail};

/// Draws a token from rows of `logits: [R, V]`, each request from the row that it names; rows ascend. Changes those rows on
/// the CPU and with CUDA.
pub fn draw(logits: &Tensor, requests: &[(usize, Draw<'_>)]) -> Result<Vec<Drawn>> {
    let width = logits.dim(1)?;
    #[cfg(feature = "cuda")]
    if logits.device().is_cuda() {
        return cuda::draw(logits, requests);
    }
    if !logits.device().is_cpu() {
        let mut logits = logits.force_contiguous()?.flatten_all()?.to_vec1::<f32>()?;
        return Ok(sample::draw_rows(active_isa(), &mut logits, width, requests));
    }
    let draws = DrawRows { width, requests, drawn: Mutex::default() };
    logits.inplace_op1(&draws)?;
    Ok(draws.drawn.into_inner().unwrap_or_else(PoisonError::into_inner))
}

struct DrawRows<'a> {
    width: usize,
    requests: &'a [(usize, Draw<'a>)],
    drawn: Mutex<Vec<Drawn>>,
}

impl InplaceOp1 for DrawRows<'_> {
    fn name(&self) -> &'static str {
        "draw"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (CpuStorage::F32(logits), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
            bail!("logits are contiguous f32")
        };
        let drawn = sample::draw_rows(active_isa(), &mut logits[start..end], self.width, self.requests);
        *self.drawn.lock().unwrap_or_else(PoisonError::into_inner) = drawn;
        Ok(())
    }
}
