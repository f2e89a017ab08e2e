//! The operations of [`crate::ops`] for tensors on a GPU.

use std::cell::{Ref, RefCell};
use std::ops::Range;

use candle_core::{CudaDevice, DType, Result, Tensor, bail};

use super::device::{hold, hold_as, output, processors, run};
use super::launch::{self, Angles, Launch, Parts, Typed};
use super::plan::{Cut, Plan, WIDE_ROWS, strips};
use crate::attention::{Heads, KEYS, PagedSequence};
use crate::embedding::Pool;
use crate::rope::RopeTable;
use crate::sample::{Draw, Drawn};

fn cuda_device(tensor: &Tensor) -> Result<CudaDevice> {
    tensor.device().as_cuda_device().cloned()
}

fn rows_and_width(x: &Tensor) -> Result<(usize, usize)> {
    x.dims2()
}

pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f32, to: DType) -> Result<Tensor> {
    let (device, (rows, width)) = (cuda_device(x)?, rows_and_width(x)?);
    let (held, weight) = (hold_as(x, DType::F32)?, hold_as(weight, DType::F32)?);
    let (tensor, out) = output(&device, (rows, width), to)?;
    run(&device, &launch::rms_norm(held.values.at, weight.values.at, epsilon, out, rows, width))?;
    Ok(tensor)
}

pub(crate) fn add_rms_norm(
    x: &Tensor,
    delta: &Tensor,
    weight: &Tensor,
    epsilon: f32,
    to: DType,
) -> Result<(Tensor, Tensor)> {
    let (device, (rows, width)) = (cuda_device(x)?, rows_and_width(x)?);
    same_shape(x, delta)?;
    let (x, delta, weight) = (hold_as(x, DType::F32)?, hold_as(delta, DType::F32)?, hold_as(weight, DType::F32)?);
    let (sum, at) = output(&device, (rows, width), DType::F32)?;
    let (normed, out) = output(&device, (rows, width), to)?;
    let (x, delta, weight) = (x.values.at, delta.values.at, weight.values.at);
    run(&device, &launch::add_rms_norm(x, delta, weight, epsilon, at.at, out, rows, width))?;
    Ok((sum, normed))
}

pub(crate) fn layer_norm(
    x: &Tensor,
    delta: Option<&Tensor>,
    weight: &Tensor,
    bias: &Tensor,
    epsilon: f32,
) -> Result<Tensor> {
    let (device, (rows, width)) = (cuda_device(x)?, rows_and_width(x)?);
    delta.map(|delta| same_shape(x, delta)).transpose()?;
    let (x, weight, bias) = (hold_as(x, DType::F32)?, hold_as(weight, DType::F32)?, hold_as(bias, DType::F32)?);
    let delta = delta.map(|delta| hold_as(delta, DType::F32)).transpose()?;
    let (tensor, out) = output(&device, (rows, width), DType::F32)?;
    let delta = delta.as_ref().map_or(0, |delta| delta.values.at);
    let (x, weight, bias) = (x.values.at, weight.values.at, bias.values.at);
    run(&device, &launch::layer_norm(x, delta, weight, bias, epsilon, out.at, rows, width))?;
    Ok(tensor)
}

pub(crate) fn norm_heads(qkv: &Tensor, q: &Tensor, k: &Tensor, heads: Heads, epsilon: f32) -> Result<Tensor> {
    let (device, (rows, width)) = (cuda_device(qkv)?, rows_and_width(qkv)?);
    let (qkv, q, k) = (hold_as(qkv, DType::F32)?, hold_as(q, DType::F32)?, hold_as(k, DType::F32)?);
    let (tensor, out) = output(&device, (rows, width), DType::F32)?;
    run(&device, &launch::norm_heads(qkv.values.at, q.values.at, k.values.at, epsilon, out.at, heads, rows))?;
    Ok(tensor)
}

pub(crate) fn swiglu(gate_up: &Tensor, to: DType) -> Result<Tensor> {
    gated(launch::swiglu, gate_up, to)
}

pub(crate) fn geglu(gate_up: &Tensor, to: DType) -> Result<Tensor> {
    gated(launch::geglu, gate_up, to)
}

fn gated(kernel: fn(u64, Typed, usize, usize) -> Launch, gate_up: &Tensor, to: DType) -> Result<Tensor> {
    let (device, (rows, both)) = (cuda_device(gate_up)?, rows_and_width(gate_up)?);
    let held = hold_as(gate_up, DType::F32)?;
    let (tensor, out) = output(&device, (rows, both / 2), to)?;
    run(&device, &kernel(held.values.at, out, rows, both / 2))?;
    Ok(tensor)
}

pub(crate) fn gelu(x: &Tensor, to: DType) -> Result<Tensor> {
    let (device, held) = (cuda_device(x)?, hold_as(x, DType::F32)?);
    let (tensor, out) = output(&device, x.shape().clone(), to)?;
    run(&device, &launch::gelu(held.values.at, out, x.elem_count()))?;
    Ok(tensor)
}

/// `x + y`, where `y` is of the same shape or one row.
pub(crate) fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (device, count, period) = (cuda_device(x)?, x.elem_count(), y.elem_count());
    if period == 0 || !count.is_multiple_of(period) {
        bail!("{:?} and {:?} cannot be added", x.shape(), y.shape());
    }
    let (held, y) = (hold_as(x, DType::F32)?, hold_as(y, DType::F32)?);
    let (tensor, out) = output(&device, x.shape().clone(), DType::F32)?;
    run(&device, &launch::add(held.values.at, y.values.at, out.at, count, period))?;
    Ok(tensor)
}

pub(crate) fn to_bf16(x: &Tensor) -> Result<Tensor> {
    let (device, held) = (cuda_device(x)?, hold_as(x, DType::F32)?);
    let (tensor, out) = output(&device, x.shape().clone(), DType::BF16)?;
    run(&device, &launch::to_bf16(held.values.at, out.at, x.elem_count()))?;
    Ok(tensor)
}

/// Rows of `table: [V, H]` as `f32: [N, H]`.
pub(crate) fn lookup(table: &Tensor, ids: &[u32]) -> Result<Tensor> {
    let (device, (rows, width)) = (cuda_device(table)?, rows_and_width(table)?);
    // No driver allocates or copies nothing.
    if ids.is_empty() {
        return Ok(output(&device, (0, width), DType::F32)?.0);
    }
    if let Some(id) = ids.iter().find(|id| **id as usize >= rows) {
        bail!("row {id} of {rows}");
    }
    let table = hold(table)?;
    let (tensor, out) = output(&device, (ids.len(), width), DType::F32)?;
    let ids = Tensor::new(ids, &candle_core::Device::Cuda(device.clone()))?;
    let held = hold(&ids)?;
    run(&device, &launch::lookup(table.values, held.values.at, out.at, ids.elem_count(), width))?;
    Ok(tensor)
}

/// Plans on the GPU, one for each window that layers have.
#[derive(Debug, Default)]
pub(crate) struct Plans(RefCell<Vec<(Option<usize>, Planned)>>);

#[derive(Debug)]
struct Planned {
    plan: Plan,
    words: Tensor,
    /// Pages that there must be: one more than the last that a slot or a sequence names.
    pages: usize,
}

impl Planned {
    /// Says so where `pages` are no pages for these heads, or too few: the kernels do not check.
    fn fits(&self, pages: &Tensor, heads: Heads) -> Result<()> {
        let (count, len) = pages.dims2()?;
        let page = if pages.dtype() == DType::U8 { heads.page().quantised_len() } else { heads.page().len() };
        if len != page || count < self.pages {
            bail!("{count} pages of {len} values for {heads:?} and page {}", self.pages.saturating_sub(1));
        }
        Ok(())
    }
}

/// The rows of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub positions: &'a [u32],
    pub slots: &'a [u32],
    pub sequences: &'a [PagedSequence<'a>],
    pub plans: &'a Plans,
}

impl<'a> Batch<'a> {
    fn plan(self, heads: Heads, window: Option<usize>, device: &CudaDevice) -> Result<Ref<'a, Planned>> {
        let known = |plans: &Vec<(Option<usize>, Planned)>| plans.iter().position(|(of, _)| *of == window);
        if known(&self.plans.0.borrow()).is_none() {
            let (positions, slots) = (self.positions.len(), self.slots.len());
            if heads.group() > WIDE_ROWS || positions != slots {
                bail!("{heads:?} (groups of {WIDE_ROWS} at most), {positions} positions and {slots} slots");
            }
            let named = self.sequences.iter().flat_map(|sequence| sequence.pages).copied();
            let last = self.slots.iter().map(|slot| slot / KEYS as u32).chain(named).max();
            let pages = last.map_or(0, |page| page as usize + 1);
            let cut = Cut { group: heads.group(), keys: heads.keys, window, processors: processors(device)? };
            let plan = Plan::new(self.positions, self.slots, self.sequences, cut);
            let words = Tensor::new(plan.words.as_slice(), &candle_core::Device::Cuda(device.clone()))?;
            self.plans.0.borrow_mut().push((window, Planned { plan, words, pages }));
        }
        Ok(Ref::map(self.plans.0.borrow(), |plans| &plans[known(plans).unwrap_or(0)].1))
    }
}

/// Turned queries `[N, A·D]`; keys and values go into `pages`.
pub(crate) fn rotate_and_store(
    qkv: &Tensor,
    pages: &Tensor,
    heads: Heads,
    table: &RopeTable,
    batch: Batch<'_>,
) -> Result<Tensor> {
    let (device, (rows, width)) = (cuda_device(qkv)?, rows_and_width(qkv)?);
    if width != heads.query_width() + 2 * heads.key_width() || rows != batch.positions.len() {
        bail!("{rows} rows of {width} for {heads:?} and {} positions", batch.positions.len());
    }
    let (cos, sin) = table.on_device(qkv.device())?;
    let planned = batch.plan(heads, None, &device)?;
    planned.fits(pages, heads)?;
    let (qkv, pages, words) = (hold_as(qkv, DType::F32)?, hold(pages)?, hold(&planned.words)?);
    let angles = Angles { cos: hold(cos)?.values.at, sin: hold(sin)?.values.at };
    let (tensor, q) = output(&device, (rows, heads.query_width()), DType::F32)?;
    let (qkv, words) = (qkv.values.at, words.values.at);
    run(&device, &launch::rotate_and_store(qkv, angles, &planned.plan, words, q.at, pages.values, heads))?;
    Ok(tensor)
}

pub(crate) fn paged_attention(
    q: &Tensor,
    pages: &Tensor,
    heads: Heads,
    window: Option<usize>,
    batch: Batch<'_>,
    to: DType,
) -> Result<Tensor> {
    let device = cuda_device(q)?;
    if !matches!(heads.dim, 64 | 128) || !matches!(pages.dtype(), DType::F16 | DType::BF16 | DType::U8) {
        bail!(
            "on a GPU heads have 64 or 128 dimensions and pages f16, bf16 or 8 bits, not {} and {:?}",
            heads.dim,
            pages.dtype()
        );
    }
    let planned = batch.plan(heads, window, &device)?;
    planned.fits(pages, heads)?;
    let (rows, parts) = (planned.plan.rows, planned.plan.parts);
    if q.dims2()? != (rows, heads.query_width()) {
        bail!("queries {:?} of {rows} rows for {heads:?}", q.shape());
    }
    let (q, pages, words) = (hold_as(q, DType::F32)?, hold(pages)?, hold(&planned.words)?);
    let (tensor, out) = output(&device, (rows, heads.query_width()), to)?;
    let (_sums, sums) = output(&device, (parts, heads.query_width()), DType::F32)?;
    let (_marks, marks) = output(&device, (parts, heads.queries, 2), DType::F32)?;
    let parts = Parts { sums: sums.at, marks: marks.at };
    for launch in launch::paged(q.values.at, pages.values, &planned.plan, words.values.at, heads, out, parts) {
        run(&device, &launch)?;
    }
    Ok(tensor)
}

/// The strips of an encoder's batch on the GPU.
pub(crate) fn strips_on_device(sequences: &[Range<usize>], device: &candle_core::Device) -> Result<Tensor> {
    let words = strips(sequences);
    Tensor::from_vec(words.clone(), (words.len() / 4, 4), device)
}

pub(crate) fn ragged_attention(qkv: &Tensor, strips: &Tensor, heads: Heads, to: DType) -> Result<Tensor> {
    let (device, (rows, _)) = (cuda_device(qkv)?, rows_and_width(qkv)?);
    if !matches!(heads.dim, 32 | 64 | 128) {
        bail!("on a GPU heads have 32, 64 or 128 dimensions, not {}", heads.dim);
    }
    let (qkv, held) = (hold_as(qkv, DType::F32)?, hold(strips)?);
    let (tensor, out) = output(&device, (rows, heads.query_width()), to)?;
    run(&device, &launch::ragged(qkv.values.at, held.values.at, strips.dim(0)?, heads, out))?;
    Ok(tensor)
}

fn text_words(texts: &[Range<usize>], device: &CudaDevice) -> Result<Tensor> {
    let words: Vec<u32> = texts.iter().flat_map(|text| [text.start as u32, text.len() as u32]).collect();
    Tensor::from_vec(words, (texts.len(), 2), &candle_core::Device::Cuda(device.clone()))
}

pub(crate) fn pool_unit(hidden: &Tensor, texts: &[Range<usize>], pool: Pool) -> Result<Tensor> {
    let (device, (_, width)) = (cuda_device(hidden)?, rows_and_width(hidden)?);
    let words = text_words(texts, &device)?;
    let (hidden, words) = (hold_as(hidden, DType::F32)?, hold(&words)?);
    let (tensor, out) = output(&device, (texts.len(), width), DType::F32)?;
    let mean = pool == Pool::Mean;
    run(&device, &launch::pool_unit(hidden.values.at, words.values.at, texts.len(), mean, out.at, width))?;
    Ok(tensor)
}

pub(crate) fn unit_rows(x: &Tensor) -> Result<Tensor> {
    let (device, (rows, width)) = (cuda_device(x)?, rows_and_width(x)?);
    let held = hold_as(x, DType::F32)?;
    let (tensor, out) = output(&device, (rows, width), DType::F32)?;
    run(&device, &launch::unit_rows(held.values.at, out.at, rows, width))?;
    Ok(tensor)
}

pub(crate) fn sparse_max(weights: &Tensor, ids: &[u32], texts: &[Range<usize>]) -> Result<Tensor> {
    let device = cuda_device(weights)?;
    let words = text_words(texts, &device)?;
    let ids = Tensor::new(ids, weights.device())?;
    let (weights, held_ids, words) = (hold_as(weights, DType::F32)?, hold(&ids)?, hold(&words)?);
    let (tensor, out) = output(&device, ids.elem_count(), DType::F32)?;
    let longest = texts.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    let (weights, ids, words) = (weights.values.at, held_ids.values.at, words.values.at);
    run(&device, &launch::sparse_max(weights, ids, words, texts.len(), longest, out.at))?;
    Ok(tensor)
}

/// Draws from rows of logits, which adjustments change; each request names its row.
pub(crate) fn draw(logits: &Tensor, requests: &[(usize, Draw<'_>)]) -> Result<Vec<Drawn>> {
    let (device, (rows, vocabulary)) = (cuda_device(logits)?, rows_and_width(logits)?);
    let token_exists = |draw: &Draw<'_>| draw.adjustments.iter().all(|by| (by.token as usize) < vocabulary);
    if vocabulary > launch::DRAW_TOKENS || requests.iter().any(|(row, draw)| *row >= rows || !token_exists(draw)) {
        bail!("draws from {rows} rows of {vocabulary} tokens ({} at most) that do not exist", launch::DRAW_TOKENS);
    }
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let words = launch::draw_words(requests, vocabulary);
    let copy = |mut words: Vec<u32>| {
        // No driver allocates or copies nothing.
        words.resize(words.len().max(1), 0);
        Tensor::new(words, logits.device())
    };
    let (wanted, adjustments, masks) = (copy(words.requests)?, copy(words.adjustments)?, copy(words.masks)?);
    let (held, wanted, adjustments, masks) =
        (hold_as(logits, DType::F32)?, hold(&wanted)?, hold(&adjustments)?, hold(&masks)?);
    let draws =
        launch::Draws { masks: masks.values.at, requests: wanted.values.at, adjustments: adjustments.values.at };
    let (tensor, out) = output(&device, requests.len(), DType::U32)?;
    run(&device, &launch::draw(held.values.at, draws, requests.len(), vocabulary, out.at))?;
    Ok(tensor.to_vec1::<u32>()?.into_iter().map(launch::drawn).collect())
}

fn same_shape(x: &Tensor, y: &Tensor) -> Result<()> {
    if x.shape() == y.shape() { Ok(()) } else { bail!("{:?} and {:?} cannot be added", x.shape(), y.shape()) }
}
