//! The compute device: the CPU, or a GPU where the build has CUDA.

use anyhow::Result;
use candle_core::Device;

use crate::eprintln;
use crate::failure::refusal;
use crate::flags::Gpu;

/// Opens the device that the flags name.
pub fn device(gpu: Gpu) -> Result<Device> {
    match gpu {
        Gpu::None => Ok(Device::Cpu),
        Gpu::Number(number) => open(number),
        Gpu::Auto => Ok(open(0).unwrap_or_else(|error| {
            eprintln!("computing on the CPU: {error}");
            Device::Cpu
        })),
    }
}

#[cfg(not(feature = "cuda"))]
fn open(number: usize) -> Result<Device> {
    Err(refusal(
        format!("this build computes on the CPU only, so there is no GPU {number} for it"),
        "omit --gpu, or use a build for GPUs (cargo build --release --features cuda)",
    ))
}

#[cfg(feature = "cuda")]
fn open(number: usize) -> Result<Device> {
    let hint = "omit --gpu to compute on the CPU; a GPU needs a driver of NVIDIA that is as new as the build";
    let device = kernels::cuda::device::open(number).map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        refusal(format!("GPU {number} cannot be used: {error}{source}"), hint)
    })?;
    if kernels::cuda::quantised_products() == kernels::cuda::QuantisedProducts::Wrong {
        eprintln!(
            "GPU {number} multiplies quantised weights wrongly: they are kept as bf16 on it, which takes more memory"
        );
    }
    Ok(device)
}
