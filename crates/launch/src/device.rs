//! What computes: the devices and the backend on them.

use std::path::Path;

use anyhow::Result;
use candle_core::Device;
use models::{ComputedBy, Kernels, KvPrecision, LanguageModel, LoadOptions};
use portable::Portable;

use crate::eprintln;
use crate::failure::refusal;
use crate::flags::{BackendChoice, GlobalFlags, Gpu};
use crate::split::{Placement, Share};

/// The devices that the flags name, and the backend that computes on the first of them.
pub(crate) struct Computing {
    pub device: Device,
    pub backend: Box<dyn models::Backend>,
    /// The GPUs, in the order of the flags; none if the CPU computes.
    pub gpus: Vec<Device>,
    choice: BackendChoice,
}

impl Computing {
    /// Opens the devices that the flags name.
    ///
    /// # Errors
    /// If there is no such GPU, or the backend does not compute on it.
    pub fn of(flags: &GlobalFlags) -> Result<Computing> {
        let gpus = match flags.gpu() {
            Gpu::None => Vec::new(),
            Gpu::Numbers(numbers) => {
                numbers.into_iter().map(|number| open(number, flags.backend)).collect::<Result<_>>()?
            }
            Gpu::Auto => match open(0, flags.backend) {
                Ok(device) => vec![device],
                Err(error) => {
                    eprintln!("computing on the CPU: {error}");
                    Vec::new()
                }
            },
        };
        if let [first, _, ..] = &gpus[..]
            && !first.is_cuda()
        {
            return Err(refusal("the layers of a model are divided among NVIDIA GPUs only", "name one GPU: --gpu 0"));
        }
        let device = gpus.first().cloned().unwrap_or(Device::Cpu);
        let choice = flags.backend.unwrap_or(BackendChoice::default_on(&device));
        check_kv(flags.kv(), !device.is_cpu() && choice == BackendChoice::Kernels)?;
        Ok(Computing { backend: backend_on(&device, choice)?, device, gpus, choice })
    }

    /// Loads a language model as it is placed: all of it on the first device, or each share on its own.
    ///
    /// # Errors
    /// If its files cannot be read, or a device has no room for it.
    pub fn load(&self, path: &Path, options: LoadOptions, placement: Option<&Placement>) -> Result<LanguageModel> {
        let Some(Placement { shares, .. }) = placement else {
            return Ok(LanguageModel::load_on(path, options, &*self.backend)?);
        };
        let device = |share: &Share| share.gpu.map_or(&Device::Cpu, |gpu| &self.gpus[gpu]);
        let backends = shares.iter().map(|share| backend_on(device(share), self.choice)).collect::<Result<Vec<_>>>()?;
        let parts: Vec<_> =
            backends.iter().zip(shares).map(|(backend, share)| (&**backend, share.part.clone())).collect();
        Ok(LanguageModel::load_split(path, options, &parts)?)
    }
}

/// The names of the NVIDIA GPUs that the flags name, as far as there are such.
pub fn gpu_names(flags: &GlobalFlags) -> Vec<String> {
    let numbers = match flags.gpu() {
        Gpu::None => Vec::new(),
        Gpu::Numbers(numbers) => numbers,
        Gpu::Auto => vec![0],
    };
    #[cfg(feature = "cuda")]
    let name = kernels::cuda::device::name;
    #[cfg(not(feature = "cuda"))]
    let name = |_: usize| None;
    numbers.into_iter().filter_map(name).collect()
}

/// Refuses a KV cache in another format than f16 if kernels compute on a GPU.
///
/// # Errors
/// For bf16 and q8_0 there.
pub fn check_kv(kv: KvPrecision, by_gpu_kernels: bool) -> Result<()> {
    if kv == KvPrecision::F16 || !by_gpu_kernels {
        return Ok(());
    }
    Err(refusal(
        format!("the kernels for GPUs have no keys and values in {kv}"),
        "omit --kv, or --gpu, or compute with --backend portable",
    ))
}

/// What computes by these flags, as far as it is known before a device is opened.
pub(crate) fn computed_by(flags: &GlobalFlags) -> ComputedBy {
    let on_metal = cfg!(feature = "metal") && flags.gpu() != Gpu::None;
    match flags.backend {
        Some(BackendChoice::Portable) | None if on_metal => ComputedBy::PortableOnMetal,
        Some(BackendChoice::Portable) => ComputedBy::Portable,
        Some(BackendChoice::Kernels) | None => ComputedBy::Kernels,
    }
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
        let device =
            Device::new_cuda(number).map_err(|error| refusal(format!("GPU {number} cannot be used: {error}"), hint))?;
        if kernels::cuda::settle_quantised(&device) == kernels::cuda::QuantisedProducts::Wrong {
            let error = format!("candle multiplies quantised weights wrongly on GPU {number}");
            return Err(refusal(error, "omit --backend portable"));
        }
        return Ok(device);
    }
    kernels::cuda::device::open(number).map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        refusal(format!("GPU {number} cannot be used: {error}{source}"), hint)
    })
}
