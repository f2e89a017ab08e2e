//! Operations of the network with their gradients on the processor, as candle's custom operations.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp1, CustomOp3, Layout, Result, Shape, Storage, Tensor, bail};
use kernels::attention::Heads;
use kernels::rope::RopeTable;
use kernels::training::attention::Causal;
use kernels::training::{View, ViewMut, multiply, rms_norm, rms_norm_backward, swiglu, swiglu_backward};

use crate::lora::{LoraPair, Part};

/// The values of a contiguous `f32` tensor on the processor.
pub(crate) fn with_values<T>(tensor: &Tensor, use_them: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => use_them(values(storage, layout)?),
        _ => bail!("a fused operation on a tensor that is not in main memory"),
    }
}

fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((from, to)) = layout.contiguous_offsets() else { bail!("a fused operation on a strided tensor") };
    Ok(&storage.as_slice::<f32>()?[from..to])
}

fn result(values: Vec<f32>, shape: impl Into<Shape>) -> (CpuStorage, Shape) {
    (CpuStorage::F32(values), shape.into())
}

fn tensor(values: Vec<f32>, like: &Tensor) -> Result<Option<Tensor>> {
    Ok(Some(Tensor::from_vec(values, like.shape(), like.device())?))
}

/// RMSNorm of rows by a frozen weight.
pub(crate) struct RmsNorm {
    pub weight: Tensor,
    pub epsilon: f32,
}

impl CustomOp1 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        with_values(&self.weight, |weight| {
            Ok(result(rms_norm(values(x, layout)?, weight, self.epsilon), layout.shape().clone()))
        })
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let run = |weight: &[f32]| {
            with_values(x, |x| with_values(grad, |grad| Ok(rms_norm_backward(x, weight, self.epsilon, grad))))
        };
        tensor(with_values(&self.weight, run)?, x)
    }
}

/// `silu(gate) · up` of rows that hold both.
pub(crate) struct SwiGlu;

impl CustomOp1 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, cols) = layout.shape().dims2()?;
        Ok(result(swiglu(values(x, layout)?, cols / 2), (rows, cols / 2)))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let width = x.dim(1)? / 2;
        tensor(with_values(x, |x| with_values(grad, |grad| Ok(swiglu_backward(x, width, grad))))?, x)
    }
}

/// Rotary positions and causal attention of whole sequences: `[N, (A + 2K)·D] -> [N, A·D]`.
pub(crate) struct Attention {
    pub heads: Heads,
    pub rope: Arc<RopeTable>,
    pub sequences: Arc<[Range<usize>]>,
    pub window: Option<usize>,
}

impl Attention {
    fn causal(&self) -> Causal<'_> {
        Causal { heads: self.heads, rope: &self.rope, sequences: &self.sequences, window: self.window }
    }
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "causal-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = self.causal().forward(values(qkv, layout)?);
        Ok(result(out, (layout.shape().dims2()?.0, self.heads.query_width())))
    }

    fn bwd(&self, qkv: &Tensor, out: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let run =
            |qkv: &[f32]| with_values(out, |out| with_values(grad, |grad| Ok(self.causal().backward(qkv, out, grad))));
        tensor(with_values(qkv, run)?, qkv)
    }
}

/// `x Wᵀ + b` by a frozen matrix, plus `s · (x Aᵀ) Bᵀ` for the parts of its rows that an adapter changes.
pub(crate) struct Projection {
    /// `[out, in]`
    weight: Tensor,
    bias: Option<Tensor>,
    parts: Arc<[Part]>,
    rank: usize,
    scale: f32,
    /// `x Aᵀ`, which the backward pass needs again.
    thin: OnceLock<Vec<f32>>,
}

impl Projection {
    /// Applies it to `x: [N, in]`.
    pub fn apply(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, lora: Option<&LoraPair>) -> Result<Tensor> {
        let op = |parts, rank, scale| Projection {
            weight: weight.clone(),
            bias: bias.cloned(),
            parts,
            rank,
            scale,
            thin: OnceLock::new(),
        };
        match lora {
            None => x.apply_op1(op(Arc::default(), 0, 0.0)),
            Some(pair) => x.apply_op3(&pair.a, &pair.b, op(pair.parts.clone(), pair.rank, pair.scale)),
        }
    }

    fn base(&self, x: &[f32], rows: usize) -> Result<Vec<f32>> {
        let (outs, ins) = self.weight.dims2()?;
        let mut y = vec![0f32; rows * outs];
        with_values(&self.weight, |weight| {
            let weight = View::new(weight, outs, ins).transposed();
            multiply(View::new(x, rows, ins), weight, 1.0, ViewMut::new(&mut y, rows, outs), false);
            Ok(())
        })?;
        if let Some(bias) = &self.bias {
            with_values(bias, |bias| {
                for row in y.chunks_exact_mut(outs) {
                    row.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
                }
                Ok(())
            })?;
        }
        Ok(y)
    }

    fn base_backward(&self, grad: &[f32], rows: usize) -> Result<Vec<f32>> {
        let (outs, ins) = self.weight.dims2()?;
        let mut x_grad = vec![0f32; rows * ins];
        with_values(&self.weight, |weight| {
            let into = ViewMut::new(&mut x_grad, rows, ins);
            multiply(View::new(grad, rows, outs), View::new(weight, outs, ins), 1.0, into, false);
            Ok(())
        })?;
        Ok(x_grad)
    }
}

impl CustomOp1 for Projection {
    fn name(&self) -> &'static str {
        "frozen-projection"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = layout.shape().dims2()?.0;
        Ok(result(self.base(values(x, layout)?, rows)?, (rows, self.weight.dim(0)?)))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let rows = x.dim(0)?;
        tensor(with_values(grad, |grad| self.base_backward(grad, rows))?, x)
    }
}

impl CustomOp3 for Projection {
    fn name(&self) -> &'static str {
        "adapted-projection"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        a: &CpuStorage,
        a_layout: &Layout,
        b: &CpuStorage,
        b_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (rows, ins) = x_layout.shape().dims2()?;
        let (x, a, b) = (values(x, x_layout)?, values(a, a_layout)?, values(b, b_layout)?);
        let (outs, rank, width) = (self.weight.dim(0)?, self.rank, self.parts.len() * self.rank);
        let mut y = self.base(x, rows)?;
        let mut thin = vec![0f32; rows * width];
        let a = View::new(a, width, ins).transposed();
        multiply(View::new(x, rows, ins), a, 1.0, ViewMut::new(&mut thin, rows, width), false);
        let b = View::new(b, b.len() / rank, rank);
        for (at, part) in self.parts.iter().enumerate() {
            let b = b.rows(part.b_row, part.rows.len()).transposed();
            let into = ViewMut::new(&mut y, rows, outs).columns(part.rows.start, part.rows.len());
            multiply(View::new(&thin, rows, width).columns(at * rank, rank), b, self.scale, into, true);
        }
        self.thin.get_or_init(|| thin);
        Ok(result(y, (rows, outs)))
    }

    fn bwd(
        &self,
        x: &Tensor,
        a: &Tensor,
        b: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let ((rows, ins), rank, width) = (x.dims2()?, self.rank, self.parts.len() * self.rank);
        let outs = self.weight.dim(0)?;
        let Some(thin) = self.thin.get() else { bail!("a backward pass before the forward pass") };
        let mut thin_grad = vec![0f32; rows * width];
        let (mut a_grad, mut b_grad) = (vec![0f32; a.elem_count()], vec![0f32; b.elem_count()]);
        let mut x_grad = with_values(grad, |grad| self.base_backward(grad, rows))?;
        with_values(grad, |grad| {
            with_values(b, |b| {
                let grad = View::new(grad, rows, outs);
                let b = View::new(b, b.len() / rank, rank);
                for (at, part) in self.parts.iter().enumerate() {
                    let grad = grad.columns(part.rows.start, part.rows.len());
                    let own = View::new(thin, rows, width).columns(at * rank, rank);
                    let b_rows = part.b_row * rank..(part.b_row + part.rows.len()) * rank;
                    let into = ViewMut::new(&mut b_grad[b_rows], part.rows.len(), rank);
                    multiply(grad.transposed(), own, self.scale, into, false);
                    let into = ViewMut::new(&mut thin_grad, rows, width).columns(at * rank, rank);
                    multiply(grad, b.rows(part.b_row, part.rows.len()), self.scale, into, false);
                }
                Ok(())
            })
        })?;
        let thin_grad = View::new(&thin_grad, rows, width);
        with_values(x, |x| {
            let into = ViewMut::new(&mut a_grad, width, ins);
            multiply(thin_grad.transposed(), View::new(x, rows, ins), 1.0, into, false);
            Ok(())
        })?;
        with_values(a, |a| {
            multiply(thin_grad, View::new(a, width, ins), 1.0, ViewMut::new(&mut x_grad, rows, ins), true);
            Ok(())
        })?;
        Ok((tensor(x_grad, x)?, tensor(a_grad, a)?, tensor(b_grad, b)?))
    }
}
