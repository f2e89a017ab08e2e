//! What computes: the device and the backend on it.

use anyhow::Result;
use candle_core::Device;
use models::Kernels;
use portable::Portable;

use crate::eprintln;
use crate::failure::refusal;
use crate::flags::{BackendChoice, GlobalFlags, Gpu, KvFormat};

/// A device and the backend that computes on it.
pub(crate) struct Computing {
    pub device: Device,
    pub backend: Box<dyn models::Backend>,
}

impl Computing {
    /// Opens the device that the flags name.
    ///
    /// # Errors
    /// If there is no such GPU, or the backend does not compute on it.
    pub fn of(flags: &GlobalFlags) -> Result<Computing> {
        let device = match flags.gpu() {
            Gpu::None => Device::Cpu,
            Gpu::Number(number) => open(number, flags.backend)?,
            Gpu::Auto => open(0, flags.backend).unwrap_or_else(|error| {
                eprintln!("computing on the CPU: {error}");
                Device::Cpu
            }),
        };
        let backend = flags.backend.unwrap_or(BackendChoice::default_on(&device));
        check_kv(flags.kv, device.is_cpu() && backend == BackendChoice::Kernels)?;
        Ok(Computing { backend: backend_on(&device, backend)?, device })
    }
}

/// Refuses a KV cache in q8_0 unless the kernels compute on the CPU.
///
/// # Errors
/// For q8_0 on a GPU or with the portable backend.
pub fn check_kv(kv: KvFormat, by_cpu_kernels: bool) -> Result<()> {
    if kv == KvFormat::F16 || by_cpu_kernels {
        return Ok(());
    }
    Err(refusal(
        "keys and values in q8_0 are computed by the kernels on the CPU only",
        "omit --kv, or --gpu and --backend",
    ))
}

impl BackendChoice {
    /// The kernels, except on a device for which there are none.
    fn default_on(device: &Device) -> BackendChoice {
        if device.is_metal() { BackendChoice::Portable } else { BackendChoice::Kernels }
    }
}

fn backend_on(device: &Device, backend: BackendChoice) -> Result<Box<dyn models::Backend>> {
    let device = device.clone();
    match backend {
        BackendChoice::Portable => Ok(Box::new(Portable { device })),
        BackendChoice::Kernels if device.is_metal() => Err(refusal(
            "there are no kernels for Metal",
            "omit --backend, which then is portable, or compute on the CPU with --cpu",
        )),
        BackendChoice::Kernels => Ok(Box::new(Kernels { device })),
    }
}

#[cfg(not(any(feature = "cuda", feature = "metal")))]
fn open(number: usize, _: Option<BackendChoice>) -> Result<Device> {
    let hint = if cfg!(target_os = "macos") {
        "omit --gpu, or use a build for Metal (cargo build --release --features metal)"
    } else {
        "omit --gpu, or use a build for GPUs (cargo build --release --features cuda)"
    };
    Err(refusal(format!("this build computes on the CPU only, so there is no GPU {number} for it"), hint))
}

#[cfg(all(feature = "metal", not(feature = "cuda")))]
fn open(number: usize, _: Option<BackendChoice>) -> Result<Device> {
    Device::new_metal(number)
        .map_err(|error| refusal(format!("GPU {number} cannot be used: {error}"), "omit --gpu to compute on the CPU"))
}

#[cfg(feature = "cuda")]
fn open(number: usize, backend: Option<BackendChoice>) -> Result<Device> {
    let hint = "omit --gpu to compute on the CPU; a GPU needs a driver of NVIDIA that is as new as the build";
    if backend == Some(BackendChoice::Portable) {
        return Device::new_cuda(number)
            .map_err(|error| refusal(format!("GPU {number} cannot be used: {error}"), hint));
    }
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
