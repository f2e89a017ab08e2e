//! The kernels as candle operations, so that networks are written once for all devices.
//!
//! Tensors are contiguous `f32` unless stated otherwise; positions, slots and page lists come from the host. An operation
//! that precedes a matrix product stores its output in the product's operand type `to`
//! ([`operand`](crate::weight::Weight::operand)): `f32` on the CPU. CUDA devices use `crate::cuda`; other devices return
//! candle's "no implementation".

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::attention::{self, Heads, PagedSequence, Pages, PagesMut, Placed, Texts};
use crate::cpu::active_isa;
#[cfg(feature = "cuda")]
use crate::cuda::tensors as cuda;
use crate::embedding::{self, Pool};
use crate::epilogue::Epilogue;
use crate::matmul::{self, LowRank, Matrix, RowEpilogue};
use crate::rope::{Placement, RopeTable};
use crate::sample::{self, Draw, Drawn, TopK, TopKRequest};
use crate::{activation, norm, rope};
use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, DType, InplaceOp1, InplaceOp2, Layout, Result, Shape, Storage, Tensor,
    bail,
};

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

/// RMSNorm of the rows of `x: [N, H]` with `weight: [H]`.
pub fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f32, to: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::rms_norm(x, weight, epsilon, to);
    }
    stays(to)?;
    x.apply_op2_no_bwd(weight, &RmsNorm(epsilon))
}

/// `hidden + delta` and its RMSNorm: a residual and the input of the next block.
pub fn add_rms_norm(
    hidden: &Tensor,
    delta: &Tensor,
    weight: &Tensor,
    epsilon: f32,
    to: DType,
) -> Result<(Tensor, Tensor)> {
    #[cfg(feature = "cuda")]
    if hidden.device().is_cuda() {
        return cuda::add_rms_norm(hidden, delta, weight, epsilon, to);
    }
    let sum = add(hidden, delta)?;
    let normed = rms_norm(&sum, weight, epsilon, to)?;
    Ok((sum, normed))
}

struct RmsNorm(f32);

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, w: &CpuStorage, lw: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = floats(x, lx)?;
        let out = norm::rms_norm(active_isa(), x, floats(w, lw)?, self.0);
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }
}

/// RMSNorm of every query and key head of `qkv: [N, (A + 2K)·D]`, with `q_norm, k_norm: [D]`.
pub fn norm_heads(qkv: &Tensor, q_norm: &Tensor, k_norm: &Tensor, heads: Heads, epsilon: f32) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if qkv.device().is_cuda() {
        return cuda::norm_heads(qkv, q_norm, k_norm, heads, epsilon);
    }
    qkv.apply_op3_no_bwd(q_norm, k_norm, &NormHeads(heads, epsilon))
}

struct NormHeads(Heads, f32);

impl CustomOp3 for NormHeads {
    fn name(&self) -> &'static str {
        "norm-heads"
    }

    fn cpu_fwd(
        &self,
        qkv: &CpuStorage,
        layout: &Layout,
        q: &CpuStorage,
        lq: &Layout,
        k: &CpuStorage,
        lk: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = norm::norm_heads(active_isa(), self.0, floats(q, lq)?, floats(k, lk)?, self.1, floats(qkv, layout)?);
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }
}

/// LayerNorm of the rows of `x: [N, H]` with `weight, bias: [H]`.
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, epsilon: f32) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::layer_norm(x, None, weight, bias, epsilon);
    }
    x.apply_op3_no_bwd(weight, bias, &LayerNorm(epsilon))
}

/// LayerNorm of the rows of `hidden + delta`.
pub fn add_layer_norm(hidden: &Tensor, delta: &Tensor, weight: &Tensor, bias: &Tensor, epsilon: f32) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if hidden.device().is_cuda() {
        return cuda::layer_norm(hidden, Some(delta), weight, bias, epsilon);
    }
    layer_norm(&add(hidden, delta)?, weight, bias, epsilon)
}

struct LayerNorm(f32);

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
        b: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = floats(x, lx)?;
        let out = norm::layer_norm(active_isa(), x, floats(w, lw)?, floats(b, lb)?, self.0);
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }
}

/// `silu(gate) · up` for `[N, 2F]` with the gate first; gives `[N, F]`.
pub fn swiglu(gate_up: &Tensor, to: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if gate_up.device().is_cuda() {
        return cuda::swiglu(gate_up, to);
    }
    stays(to)?;
    gate_up.apply_op1_no_bwd(&SwiGlu)
}

struct SwiGlu;

impl CustomOp1 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, both) = layout.shape().dims2()?;
        let out = activation::swiglu(active_isa(), floats(x, layout)?, both / 2);
        Ok((CpuStorage::F32(out), Shape::from((rows, both / 2))))
    }
}

/// GELU of every value, the exact form.
pub fn gelu(x: &Tensor, to: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::gelu(x, to);
    }
    stays(to)?;
    x.apply_op1_no_bwd(&Gelu)
}

struct Gelu;

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = activation::gelu(active_isa(), floats(x, layout)?);
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }
}

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
            _ => bail!("pages are f16 or f32"),
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

/// Attention of an encoder within each of `texts`, ranges of rows of `qkv: [N, 3·A·D]`; gives `[N, A·D]`.
pub fn ragged_attention(qkv: &Tensor, heads: Heads, texts: &Texts, to: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if qkv.device().is_cuda() {
        return cuda::ragged_attention(qkv, texts.strips(qkv.device())?, heads, to);
    }
    stays(to)?;
    qkv.apply_op1_no_bwd(&RaggedAttention { heads, sequences: texts.ranges() })
}

struct RaggedAttention<'a> {
    heads: Heads,
    sequences: &'a [Range<usize>],
}

impl CustomOp1 for RaggedAttention<'_> {
    fn name(&self) -> &'static str {
        "ragged-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let qkv = floats(qkv, layout)?;
        let mut out = vec![0f32; qkv.len() / 3];
        attention::ragged(active_isa(), self.heads, qkv, self.sequences, &mut out);
        let shape = Shape::from((out.len() / self.heads.query_width(), self.heads.query_width()));
        Ok((CpuStorage::F32(out), shape))
    }
}

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

/// The CPU works in `f32` throughout.
fn stays(to: DType) -> Result<()> {
    if to == DType::F32 { Ok(()) } else { bail!("on this device kernels give f32, not {to:?}") }
}

fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&values[start..end]),
        _ => bail!("kernels take contiguous f32 tensors"),
    }
}

fn on_host<'a>(storage: &'a Storage, layout: &Layout) -> Result<&'a [f32]> {
    match storage {
        Storage::Cpu(storage) => floats(storage, layout),
        _ => bail!("no implementation for this device"),
    }
}

fn pages<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<Pages<'a>> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F16(values), Some((start, end))) => Ok(Pages::F16(&values[start..end])),
        (CpuStorage::F32(values), Some((start, end))) => Ok(Pages::F32(&values[start..end])),
        _ => bail!("pages are contiguous f16 or f32 tensors"),
    }
}
