//! RMSNorm and LayerNorm.

use super::rows::add;
use super::storage::{floats, stays};
use crate::attention::Heads;
use crate::cpu::active_isa;
#[cfg(feature = "cuda")]
use crate::cuda::tensors as cuda;
use crate::norm;
use candle_core::{CpuStorage, CustomOp2, CustomOp3, DType, Layout, Result, Shape, Tensor};

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
