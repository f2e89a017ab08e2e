//! Rotary embedding, the KV cache and attention.

use std::ops::Range;

use super::storage::{floats, pages, stays};
use crate::attention::{self, Heads, PagedSequence, PagesMut, Placed, Precision, Texts};
use crate::cpu::active_isa;
#[cfg(feature = "cuda")]
use crate::cuda::tensors as cuda;
use crate::rope;
use crate::rope::{Placement, RopeTable};
use candle_core::{CpuStorage, CustomOp1, CustomOp2, DType, InplaceOp2, Layout, Result, Shape, Tensor, bail};

/// Rotated queries `[N, A·D]` of `qkv: [N, (A + 2K)·D]`; its rotated keys and its values are stored in `pages`.
pub fn rotate_and_store(
    qkv: &Tensor,
    pages: &Tensor,
    heads: Heads,
    table: &RopeTable,
    rows: &Placed<'_>,
) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if qkv.device().is_cuda() {
        return cuda::rotate_and_store(qkv, pages, heads, table, rows.on_device());
    }
    store_keys_values(pages, qkv, heads, table, rows.placement())?;
    rotate_queries(qkv, heads, table, rows.positions)
}

fn rotate_queries(qkv: &Tensor, heads: Heads, table: &RopeTable, positions: &[u32]) -> Result<Tensor> {
    qkv.apply_op1_no_bwd(&RotateQueries { heads, table, positions })
}

struct RotateQueries<'a> {
    heads: Heads,
    table: &'a RopeTable,
    positions: &'a [u32],
}

impl CustomOp1 for RotateQueries<'_> {
    fn name(&self) -> &'static str {
        "rotate-queries"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let shape = Shape::from((self.positions.len(), self.heads.query_width()));
        let mut q = vec![0f32; shape.elem_count()];
        rope::rotate_queries(self.heads, floats(qkv, layout)?, self.table, self.positions, &mut q);
        Ok((CpuStorage::F32(q), shape))
    }
}

/// Writes rotated keys and values of `qkv: [N, (A + 2K)·D]` into `pages`, in place.
fn store_keys_values(pages: &Tensor, qkv: &Tensor, heads: Heads, table: &RopeTable, at: Placement<'_>) -> Result<()> {
    pages.inplace_op2(qkv, &StoreKeysValues { heads, table, at })
}

struct StoreKeysValues<'a> {
    heads: Heads,
    table: &'a RopeTable,
    at: Placement<'a>,
}

impl InplaceOp2 for StoreKeysValues<'_> {
    fn name(&self) -> &'static str {
        "store-keys-values"
    }

    fn cpu_fwd(&self, pages: &mut CpuStorage, layout: &Layout, qkv: &CpuStorage, lq: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else { bail!("pages are contiguous") };
        let pages = match pages {
            CpuStorage::F16(values) => PagesMut::F16(&mut values[start..end]),
            CpuStorage::F32(values) => PagesMut::F32(&mut values[start..end]),
            CpuStorage::BF16(values) => PagesMut::Bf16(&mut values[start..end]),
            CpuStorage::U8(bytes) => PagesMut::Q8(&mut bytes[start..end]),
            _ => bail!("pages are f16, bf16, f32 or bytes"),
        };
        rope::store_keys_values(self.heads, floats(qkv, lq)?, self.table, self.at, pages);
        Ok(())
    }
}

/// Causal attention of `q: [N, A·D]` over `pages`, over the latest `window` keys if there is a window; gives `[N, A·D]`.
pub fn paged_attention(
    q: &Tensor,
    pages: &Tensor,
    heads: Heads,
    window: Option<usize>,
    rows: &Placed<'_>,
    to: DType,
) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if q.device().is_cuda() {
        return cuda::paged_attention(q, pages, heads, window, rows.on_device(), to);
    }
    stays(to)?;
    q.apply_op2_no_bwd(pages, &PagedAttention { heads, window, sequences: rows.sequences })
}

struct PagedAttention<'a> {
    heads: Heads,
    window: Option<usize>,
    sequences: &'a [PagedSequence<'a>],
}

impl CustomOp2 for PagedAttention<'_> {
    fn name(&self) -> &'static str {
        "paged-attention"
    }

    fn cpu_fwd(&self, q: &CpuStorage, lq: &Layout, kv: &CpuStorage, lp: &Layout) -> Result<(CpuStorage, Shape)> {
        let q = floats(q, lq)?;
        let mut out = vec![0f32; q.len()];
        attention::paged(active_isa(), self.heads, self.window, q, pages(kv, lp)?, self.sequences, &mut out);
        Ok((CpuStorage::F32(out), lq.shape().clone()))
    }
}

/// Attention of an encoder within each of `texts`, ranges of rows of `qkv: [N, 3·A·D]`; gives `[N, A·D]`. A GPU has a precision of
/// its own.
pub fn ragged_attention(qkv: &Tensor, heads: Heads, precision: Precision, texts: &Texts, to: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if qkv.device().is_cuda() {
        return cuda::ragged_attention(qkv, texts.strips(qkv.device())?, heads, to);
    }
    stays(to)?;
    qkv.apply_op1_no_bwd(&RaggedAttention { heads, precision, sequences: texts.ranges() })
}

struct RaggedAttention<'a> {
    heads: Heads,
    precision: Precision,
    sequences: &'a [Range<usize>],
}

impl CustomOp1 for RaggedAttention<'_> {
    fn name(&self) -> &'static str {
        "ragged-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let qkv = floats(qkv, layout)?;
        let mut out = vec![0f32; qkv.len() / 3];
        attention::ragged(active_isa(), self.heads, self.precision, qkv, self.sequences, &mut out);
        let shape = Shape::from((out.len() / self.heads.query_width(), self.heads.query_width()));
        Ok((CpuStorage::F32(out), shape))
    }
}
