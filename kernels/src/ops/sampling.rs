//! Sampling from rows of logits.

use std::sync::{Mutex, PoisonError};

use super::storage::on_host;
use crate::cpu::active_isa;
#[cfg(feature = "cuda")]
use crate::cuda::tensors as cuda;
use crate::sample::{self, Draw, Drawn, TopK, TopKRequest};
use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Tensor, bail};

/// Draws a token from rows of `logits: [R, V]`, each request from the row that it names; rows ascend. Changes those rows on
/// the CPU.
///
/// There is no CUDA kernel for this yet: where the `top_k` heaviest tokens are enough and logits are not adjusted, the GPU
/// finds those; otherwise the rows are copied to the host.
pub fn draw(logits: &Tensor, requests: &[(usize, Draw<'_>)]) -> Result<Vec<Drawn>> {
    let (rows, width) = logits.dims2()?;
    if !logits.device().is_cpu() {
        return draw_on_host(logits, rows, width, requests);
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

fn draw_on_host(logits: &Tensor, rows: usize, width: usize, requests: &[(usize, Draw<'_>)]) -> Result<Vec<Drawn>> {
    let mut top = vec![TopKRequest { mask: None, wanted: 1 }; rows];
    let heaviest = |draw: &Draw<'_>| draw.heaviest_tokens();
    for (row, draw) in requests {
        if let Some(wanted) = heaviest(draw) {
            top[*row] = TopKRequest { mask: draw.mask, wanted };
        }
    }
    let is_short = requests.iter().any(|(_, draw)| heaviest(draw).is_some());
    let top = if is_short { top_k(logits, &top)? } else { Vec::new() };
    let draw = |(row, draw): &(usize, Draw<'_>)| {
        if heaviest(draw).is_some() {
            return Ok(top[*row].as_ref().map_or(Drawn::NotFinite, |top| sample::draw_from_top_k(top, draw)));
        }
        // Off a GPU comes the whole storage that a view is a part of.
        let mut row = logits.narrow(0, *row, 1)?.force_contiguous()?.flatten_all()?.to_vec1::<f32>()?;
        Ok(sample::draw_rows(active_isa(), &mut row, width, &[(0, *draw)])[0])
    };
    requests.iter().map(draw).collect()
}

/// The most likely tokens of each row of `logits: [R, V]`; `None` for a row with NaN.
pub fn top_k(logits: &Tensor, requests: &[TopKRequest<'_>]) -> Result<Vec<Option<TopK>>> {
    #[cfg(feature = "cuda")]
    if logits.device().is_cuda() {
        return cuda::top_k(logits, requests);
    }
    let width = logits.dim(1)?;
    let (storage, layout) = logits.storage_and_layout();
    Ok(sample::top_k_rows(on_host(&storage, layout)?, width, requests))
}
