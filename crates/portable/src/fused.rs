//! A block of the network and its gradient on the processor, by `kernels::training`.
//!
//! The sums that candle's backward pass would allocate, one operation after the other, are written in place here: the
//! gradient of every product is accumulated by the product itself. The backward pass computes norms and SwiGLU again, which
//! costs little, so a block keeps five activations a token.

use candle_core::{Result, Tensor};
use kernels::attention::Heads;
use kernels::rope::RopeTable;
use kernels::training::attention::{Causal, Sequence};
use kernels::training::{
    View, ViewMut, add, multiply, norm_heads, norm_heads_backward, rms_norm, rms_norm_backward, swiglu, swiglu_backward,
};

use crate::layer::{Frozen, FrozenWeight, Layer};
use crate::lora::{LoraLayer, LoraPair};
use crate::values::with_values;

/// The parameters of a block besides its weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub heads: Heads,
    pub epsilon: f32,
    pub rope: &'a RopeTable,
    pub sequences: &'a [Sequence],
    pub rows: usize,
}

/// The activations for the backward pass of a block: all `[N, width]`.
#[derive(Debug)]
pub(crate) struct Kept {
    input: Vec<f32>,
    /// Before the norms of heads, if there are any.
    qkv: Vec<f32>,
    attended: Vec<f32>,
    /// After attention and its residual.
    middle: Vec<f32>,
    gate_up: Vec<f32>,
    /// `x Aᵀ` of the four stacks.
    thin: [Vec<f32>; 4],
}

/// The block on `input: [N, H]`; its output, and what its gradient needs.
pub(crate) fn forward(
    layer: &Layer,
    input: Vec<f32>,
    around: &Surroundings<'_>,
    lora: Option<&LoraLayer>,
) -> Result<(Vec<f32>, Kept)> {
    let pair = |pick: fn(&LoraLayer) -> Option<&LoraPair>| lora.and_then(pick);
    let x = normed(&input, &layer.attention_norm, around)?;
    let (qkv, thin_qkv) = project(&layer.qkv, &x, around.rows, pair(|lora| lora.qkv.as_ref()), None)?;
    drop(x);
    let attended = match heads_normed(layer, &qkv, around)? {
        Some(qkv) => causal(layer, around).forward(&qkv),
        None => causal(layer, around).forward(&qkv),
    };
    let output = pair(|lora| lora.output.as_ref());
    let (middle, thin_output) = project(&layer.output, &attended, around.rows, output, Some(input.clone()))?;
    let x = normed(&middle, &layer.ffn_norm, around)?;
    let (gate_up, thin_gate_up) = project(&layer.gate_up, &x, around.rows, pair(|lora| lora.gate_up.as_ref()), None)?;
    drop(x);
    let x = swiglu(&gate_up, layer.down.shape()?.1);
    let down = pair(|lora| lora.down.as_ref());
    let (out, thin_down) = project(&layer.down, &x, around.rows, down, Some(middle.clone()))?;
    let thin = [thin_qkv, thin_output, thin_gate_up, thin_down];
    Ok((out, Kept { input, qkv, attended, middle, gate_up, thin }))
}

/// Adds the gradients of the block's variables to `sums`, in the order of [`LoraLayer::variables`], and returns that of its
/// input. `grad: [N, H]` is that of its output.
pub(crate) fn backward(
    layer: &Layer,
    kept: &Kept,
    mut grad: Vec<f32>,
    around: &Surroundings<'_>,
    lora: &LoraLayer,
    sums: &mut [Vec<f32>],
) -> Result<Vec<f32>> {
    let Kept { input, qkv, attended, middle, gate_up, thin } = kept;
    let rows = around.rows;
    let mut sums = sums.iter_mut();
    let mut stack = |pair: &'_ Option<LoraPair>| match pair {
        Some(_) => sums.next().zip(sums.next()).map(|(a, b)| [a, b]),
        None => None,
    };
    let (qkv_sums, output_sums) = (stack(&lora.qkv), stack(&lora.output));
    let (gate_up_sums, down_sums) = (stack(&lora.gate_up), stack(&lora.down));

    let x = swiglu(gate_up, layer.down.shape()?.1);
    let back = project_backward(&layer.down, &x, &thin[3], &grad, rows, lora.down.as_ref(), down_sums)?;
    drop(x);
    let back = swiglu_backward(gate_up, layer.down.shape()?.1, &back);
    let x = normed(middle, &layer.ffn_norm, around)?;
    let back = project_backward(&layer.gate_up, &x, &thin[2], &back, rows, lora.gate_up.as_ref(), gate_up_sums)?;
    drop(x);
    add(&mut grad, &norm_backward(middle, &layer.ffn_norm, around, &back)?);

    let back = project_backward(&layer.output, attended, &thin[1], &grad, rows, lora.output.as_ref(), output_sums)?;
    let back = match heads_normed(layer, qkv, around)? {
        Some(normed) => {
            let back = causal(layer, around).backward(&normed, attended, &back);
            heads_normed_backward(layer, qkv, around, &back)?
        }
        None => causal(layer, around).backward(qkv, attended, &back),
    };
    let x = normed(input, &layer.attention_norm, around)?;
    let back = project_backward(&layer.qkv, &x, &thin[0], &back, rows, lora.qkv.as_ref(), qkv_sums)?;
    add(&mut grad, &norm_backward(input, &layer.attention_norm, around, &back)?);
    Ok(grad)
}

fn causal<'a>(layer: &Layer, around: &Surroundings<'a>) -> Causal<'a> {
    Causal { heads: around.heads, rope: around.rope, sequences: around.sequences, window: layer.window }
}

fn normed(x: &[f32], weight: &Tensor, around: &Surroundings<'_>) -> Result<Vec<f32>> {
    with_values(weight, |weight| Ok(rms_norm(x, weight, around.epsilon)))
}

fn norm_backward(x: &[f32], weight: &Tensor, around: &Surroundings<'_>, grad: &[f32]) -> Result<Vec<f32>> {
    with_values(weight, |weight| Ok(rms_norm_backward(x, weight, around.epsilon, grad)))
}

/// With query and key heads normalised, where the architecture has it.
fn heads_normed(layer: &Layer, qkv: &[f32], around: &Surroundings<'_>) -> Result<Option<Vec<f32>>> {
    let Some((q_norm, k_norm)) = &layer.qk_norm else { return Ok(None) };
    let (heads, epsilon) = (around.heads, around.epsilon);
    let normed = |q: &[f32]| with_values(k_norm, |k| Ok(norm_heads(heads, q, k, epsilon, qkv)));
    with_values(q_norm, normed).map(Some)
}

fn heads_normed_backward(layer: &Layer, qkv: &[f32], around: &Surroundings<'_>, grad: &[f32]) -> Result<Vec<f32>> {
    let Some((q_norm, k_norm)) = &layer.qk_norm else { return Ok(grad.to_vec()) };
    let (heads, epsilon) = (around.heads, around.epsilon);
    let back = |q: &[f32]| with_values(k_norm, |k| Ok(norm_heads_backward(heads, q, k, epsilon, qkv, grad)));
    with_values(q_norm, back)
}

/// `x Wᵀ + b + s · (x Aᵀ) Bᵀ`, plus `onto` if given; and `x Aᵀ`.
fn project(
    frozen: &Frozen,
    x: &[f32],
    rows: usize,
    lora: Option<&LoraPair>,
    onto: Option<Vec<f32>>,
) -> Result<(Vec<f32>, Vec<f32>)> {
    let (outs, ins) = frozen.shape()?;
    let mut y = match &frozen.weight {
        FrozenWeight::Full(weight) => {
            let is_sum = onto.is_some();
            let mut y = onto.unwrap_or_else(|| vec![0f32; rows * outs]);
            with_values(weight, |weight| {
                let weight = View::new(weight, outs, ins).transposed();
                multiply(View::new(x, rows, ins), weight, 1.0, ViewMut::new(&mut y, rows, outs), is_sum);
                Ok(())
            })?;
            y
        }
        FrozenWeight::Half(matrix) => matrix.product(x, onto.as_deref()),
    };
    if let Some(bias) = &frozen.bias {
        with_values(bias, |bias| {
            y.chunks_exact_mut(outs).for_each(|row| row.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias));
            Ok(())
        })?;
    }
    let x = View::new(x, rows, ins);
    let Some(pair) = lora else { return Ok((y, Vec::new())) };
    let (rank, width) = (pair.rank, pair.parts.len() * pair.rank);
    let mut thin = vec![0f32; rows * width];
    with_values(&pair.a, |a| {
        let a = View::new(a, width, ins).transposed();
        multiply(x, a, 1.0, ViewMut::new(&mut thin, rows, width), false);
        Ok(())
    })?;
    with_values(&pair.b, |b| {
        let b = View::new(b, b.len() / rank, rank);
        for (at, part) in pair.parts.iter().enumerate() {
            let b = b.rows(part.b_row, part.rows.len()).transposed();
            let into = ViewMut::new(&mut y, rows, outs).columns(part.rows.start, part.rows.len());
            multiply(View::new(&thin, rows, width).columns(at * rank, rank), b, pair.scale, into, true);
        }
        Ok(())
    })?;
    Ok((y, thin))
}

/// The gradient of [`project`] for `x`; those of A and B are added to `sums`.
fn project_backward(
    frozen: &Frozen,
    x: &[f32],
    thin: &[f32],
    grad: &[f32],
    rows: usize,
    lora: Option<&LoraPair>,
    sums: Option<[&mut Vec<f32>; 2]>,
) -> Result<Vec<f32>> {
    let (outs, ins) = frozen.shape()?;
    let mut x_grad = match &frozen.weight {
        FrozenWeight::Full(weight) => {
            let mut x_grad = vec![0f32; rows * ins];
            with_values(weight, |weight| {
                let (grad, weight) = (View::new(grad, rows, outs), View::new(weight, outs, ins));
                multiply(grad, weight, 1.0, ViewMut::new(&mut x_grad, rows, ins), false);
                Ok(())
            })?;
            x_grad
        }
        FrozenWeight::Half(matrix) => matrix.transposed_product(grad),
    };
    let grad = View::new(grad, rows, outs);
    let (Some(pair), Some([a_sums, b_sums])) = (lora, sums) else { return Ok(x_grad) };
    let (rank, width) = (pair.rank, pair.parts.len() * pair.rank);
    let mut thin_grad = vec![0f32; rows * width];
    with_values(&pair.b, |b| {
        let b = View::new(b, b.len() / rank, rank);
        for (at, part) in pair.parts.iter().enumerate() {
            let grad = grad.columns(part.rows.start, part.rows.len());
            let own = View::new(thin, rows, width).columns(at * rank, rank);
            let b_rows = part.b_row * rank..(part.b_row + part.rows.len()) * rank;
            let into = ViewMut::new(&mut b_sums[b_rows], part.rows.len(), rank);
            multiply(grad.transposed(), own, pair.scale, into, true);
            let into = ViewMut::new(&mut thin_grad, rows, width).columns(at * rank, rank);
            multiply(grad, b.rows(part.b_row, part.rows.len()), pair.scale, into, false);
        }
        Ok(())
    })?;
    let thin_grad = View::new(&thin_grad, rows, width);
    let into = ViewMut::new(a_sums, width, ins);
    multiply(thin_grad.transposed(), View::new(x, rows, ins), 1.0, into, true);
    with_values(&pair.a, |a| {
        multiply(thin_grad, View::new(a, width, ins), 1.0, ViewMut::new(&mut x_grad, rows, ins), true);
        Ok(())
    })?;
    Ok(x_grad)
}
