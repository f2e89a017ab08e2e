//! The same operations as compositions of candle's own, on any device. Only operations with gradients are used: candle's
//! fused softmax, RMSNorm and rotary operations have none.

use candle_core::{D, DType, Device, IndexOp, Result, Tensor};
use kernels::attention::Heads;
use kernels::rope::RopeTable;
use kernels::training::attention::Sequence;

use crate::lora::LoraPair;

/// Represents minus infinity in a mask: finite, and small enough for f16.
pub(crate) const MASKED: f32 = -60_000.0;

pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f32) -> Result<Tensor> {
    let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
    x.broadcast_div(&(mean + f64::from(epsilon))?.sqrt()?)?.broadcast_mul(weight)
}

pub(crate) fn swiglu(gate_up: &Tensor) -> Result<Tensor> {
    let width = gate_up.dim(1)? / 2;
    gate_up.narrow(1, 0, width)?.silu()? * gate_up.narrow(1, width, width)?
}

pub(crate) fn project(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, lora: Option<&LoraPair>) -> Result<Tensor> {
    let mut y = x.matmul(&weight.t()?)?;
    if let Some(bias) = bias {
        y = y.broadcast_add(bias)?;
    }
    let Some(pair) = lora else { return Ok(y) };
    let (rows, outs) = y.dims2()?;
    let mut columns = Vec::new();
    let mut from = 0;
    for (at, part) in pair.parts.iter().enumerate() {
        let a = pair.a.narrow(0, at * pair.rank, pair.rank)?;
        let b = pair.b.narrow(0, part.b_row, part.rows.len())?;
        columns.push(Tensor::zeros((rows, part.rows.start - from), y.dtype(), y.device())?);
        columns.push((x.matmul(&a.t()?)?.matmul(&b.t()?)? * f64::from(pair.scale))?);
        from = part.rows.end;
    }
    columns.push(Tensor::zeros((rows, outs - from), y.dtype(), y.device())?);
    let columns: Vec<Tensor> = columns.into_iter().filter(|part| part.dims()[1] > 0).collect();
    y + Tensor::cat(&columns, 1)?
}

/// Rotary positions and causal attention: `[N, (A + 2K)·D] -> [N, A·D]`. `angles`: cosines and sines, `[positions, D/2]`.
pub(crate) fn attention(
    qkv: &Tensor,
    heads: Heads,
    angles: &(Tensor, Tensor),
    sequences: &[Sequence],
    window: Option<usize>,
) -> Result<Tensor> {
    let Heads { queries, keys, dim } = heads;
    let mut outs = Vec::with_capacity(sequences.len());
    for sequence in sequences {
        let len = sequence.len();
        let part = |from: usize, heads: usize| -> Result<Tensor> {
            let columns = qkv.i(sequence.rows.clone())?.narrow(1, from * dim, heads * dim)?;
            columns.reshape((len, heads, dim))?.transpose(0, 1)?.contiguous()
        };
        let q = rotate(&part(0, queries)?, sequence, angles)?; // [A, T, D]
        let k = rotate(&part(queries, keys)?, sequence, angles)?; // [K, T, D]
        let v = part(queries + keys, keys)?;
        // The query heads that share a key head are stacked instead of repeating keys and values.
        let group = heads.group();
        let q = q.reshape((keys, group * len, dim))?;
        let scores = (q.matmul(&k.transpose(1, 2)?.contiguous()?)? * (1.0 / (dim as f64).sqrt()))?;
        let scores = scores.reshape((keys, group, len, len))?.broadcast_add(&mask(sequence, window, qkv.device())?)?;
        let p = softmax(&scores)?.reshape((keys, group * len, len))?;
        let mixed = p.matmul(&v)?.reshape((queries, len, dim))?; // [A, T, D]
        outs.push(mixed.transpose(0, 1)?.contiguous()?.reshape((len, queries * dim))?);
    }
    Tensor::cat(&outs, 0)
}

/// Log-probability of `targets: [R]` by `logits: [R, V]`.
pub(crate) fn log_probs(logits: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let most = logits.max_keepdim(D::Minus1)?.detach();
    let shifted = logits.broadcast_sub(&most)?;
    let sums = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    (shifted.gather(&targets.unsqueeze(1)?, 1)? - sums)?.squeeze(1)
}

pub(crate) fn softmax(scores: &Tensor) -> Result<Tensor> {
    let most = scores.max_keepdim(D::Minus1)?.detach();
    let exps = scores.broadcast_sub(&most)?.exp()?;
    exps.broadcast_div(&exps.sum_keepdim(D::Minus1)?)
}

fn mask(sequence: &Sequence, window: Option<usize>, device: &Device) -> Result<Tensor> {
    let len = sequence.len();
    let seen = |row: usize, col: usize| {
        col <= row && window.is_none_or(|window| row - col < window) && !sequence.hidden_from(row).contains(&col)
    };
    let values: Vec<f32> = (0..len * len).map(|at| if seen(at / len, at % len) { 0.0 } else { MASKED }).collect();
    Tensor::from_vec(values, (len, len), device)
}

/// `x: [heads, T, D]`, the rows of a sequence.
fn rotate(x: &Tensor, sequence: &Sequence, angles: &(Tensor, Tensor)) -> Result<Tensor> {
    let positions: Vec<u32> = (0..sequence.len()).map(|row| sequence.position(row) as u32).collect();
    let positions = Tensor::new(positions, x.device())?;
    turn(x, &(angles.0.index_select(&positions, 0)?, angles.1.index_select(&positions, 0)?))
}

/// Rotates `x: [.., D]` by cosines and sines that broadcast to `[.., D/2]`.
pub(crate) fn turn(x: &Tensor, (cos, sin): &(Tensor, Tensor)) -> Result<Tensor> {
    let half = x.dim(D::Minus1)? / 2;
    let (low, high) = (x.narrow(D::Minus1, 0, half)?, x.narrow(D::Minus1, half, half)?);
    let low_turned = (low.broadcast_mul(cos)? - high.broadcast_mul(sin)?)?;
    let high_turned = (high.broadcast_mul(cos)? + low.broadcast_mul(sin)?)?;
    Tensor::cat(&[low_turned, high_turned], D::Minus1)
}

/// Cosines and sines of positions, `[N, 1, D/2]` each.
pub(crate) fn angles_of(table: &RopeTable, positions: &[u32], dim: usize, device: &Device) -> Result<(Tensor, Tensor)> {
    let (mut cos, mut sin) = (Vec::new(), Vec::new());
    for position in positions {
        let (row_cos, row_sin) = table.angles_at(*position as usize);
        cos.extend_from_slice(row_cos);
        sin.extend_from_slice(row_sin);
    }
    let tensor = |values| Tensor::from_vec(values, (positions.len(), 1, dim / 2), device);
    Ok((tensor(cos)?, tensor(sin)?))
}

/// The angles of a table on a device; `f32`, since not every device converts from `f64`.
pub(crate) fn angles(table: &RopeTable, dim: usize, device: &Device) -> Result<(Tensor, Tensor)> {
    let (cos, sin) = table.angles();
    let shape = (table.positions(), dim / 2);
    let tensor = |values| Tensor::from_vec(values, shape, device)?.to_dtype(DType::F32);
    Ok((tensor(cos)?, tensor(sin)?))
}
