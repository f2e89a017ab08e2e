//! Activations.

use super::storage::{floats, stays};
use crate::activation;
use crate::cpu::{Isa, active_isa};
#[cfg(feature = "cuda")]
use crate::cuda::tensors as cuda;
use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor};

/// `silu(gate) · up` for `[N, 2F]` with the gate first; gives `[N, F]`.
pub fn swiglu(gate_up: &Tensor, to: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if gate_up.device().is_cuda() {
        return cuda::swiglu(gate_up, to);
    }
    stays(to)?;
    gate_up.apply_op1_no_bwd(&Gated("swiglu", activation::swiglu))
}

/// `gelu_tanh(gate) · up` for `[N, 2F]` with the gate first; gives `[N, F]`.
pub fn geglu(gate_up: &Tensor, to: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if gate_up.device().is_cuda() {
        return cuda::geglu(gate_up, to);
    }
    stays(to)?;
    gate_up.apply_op1_no_bwd(&Gated("geglu", activation::geglu))
}

/// A name, and the function of `[N, 2F]` and F.
struct Gated(&'static str, fn(Isa, &[f32], usize) -> Vec<f32>);

impl CustomOp1 for Gated {
    fn name(&self) -> &'static str {
        self.0
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, both) = layout.shape().dims2()?;
        let out = (self.1)(active_isa(), floats(x, layout)?, both / 2);
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
