//! Checks, before any model is loaded, that all of them and their KV caches fit into free memory.

use anyhow::Result;
use candle_core::Device;
use models::{Footprint, KvPrecision};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::device::Computing;
use crate::flags::{GlobalFlags, Gpu};
use crate::plan::{Place, Plan};

/// Refuses models that do not fit, with the numbers. Those on an NVIDIA GPU are checked when it is known what is free beside
/// their weights (`engine::Config::for_device`).
pub(crate) fn check(
    device: &Device,
    models: &[(String, Footprint)],
    embedder: Option<&(String, u64)>,
    kv_tokens: usize,
    kv: KvPrecision,
) -> Result<()> {
    if device.is_cuda() {
        return Ok(());
    }
    let limits = [free_bytes(), working_set(device)];
    let Some(memory) = limits.into_iter().flatten().min() else { return Ok(()) };
    let on_device =
        |(name, model): &(String, Footprint)| (name.clone(), if device.is_cpu() { *model } else { model.on_gpu() });
    let models = &models.iter().map(on_device).collect::<Vec<_>>()[..];
    Plan { models, embedder, kv_tokens, kv, place: Place::Shared, memory }.check()
}

/// What a Mac's GPU may use of the memory that it shares with the CPU.
#[cfg(feature = "metal")]
fn working_set(device: &Device) -> Option<u64> {
    let device = device.as_metal_device().ok()?;
    Some(device.metal_device().recommended_max_working_set_size() as u64)
}

#[cfg(not(feature = "metal"))]
fn working_set(_: &Device) -> Option<u64> {
    None
}

/// Memory that models can use now on the device that the flags name; `None` if the system does not report it.
pub fn free_for(flags: &GlobalFlags) -> Option<u64> {
    match flags.gpu() {
        Gpu::None => free_bytes(),
        Gpu::Auto | Gpu::Number(_) => free_on_gpu(&Computing::of(flags).ok()?.device),
    }
}

#[cfg(feature = "cuda")]
fn free_on_gpu(device: &Device) -> Option<u64> {
    if device.is_cuda() {
        return kernels::cuda::device::device_info(device).ok().map(|info| info.free as u64);
    }
    free_bytes()
}

/// A GPU of Apple shares the memory of the CPU.
#[cfg(not(feature = "cuda"))]
fn free_on_gpu(device: &Device) -> Option<u64> {
    [free_bytes(), working_set(device)].into_iter().flatten().min()
}

/// Gives memory that dropped models have left back: to the system, and to the GPU that the flags name.
pub fn release(flags: &GlobalFlags) {
    kernels::memory::release_cached();
    #[cfg(feature = "cuda")]
    if flags.gpu() != Gpu::None
        && let Ok(Computing { device, .. }) = Computing::of(flags)
        && device.is_cuda()
        && let Err(error) = kernels::cuda::device::release_unused(&device)
    {
        crate::eprintln!("the memory of the GPU is not given back: {error}");
    }
    #[cfg(not(feature = "cuda"))]
    let _ = flags;
}

/// Memory that can be used without swapping, within the limits of a container; `None` if the system does not report it.
pub fn free_bytes() -> Option<u64> {
    let memory = MemoryRefreshKind::nothing().with_ram();
    let system = System::new_with_specifics(RefreshKind::nothing().with_memory(memory));
    let free = system.cgroup_limits().map_or(system.available_memory(), |limits| {
        system.available_memory().min(limits.total_memory.saturating_sub(limits.rss))
    });
    (free > 0).then_some(free)
}
