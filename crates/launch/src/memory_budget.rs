//! Checks, before any model is loaded, that all of them and their KV caches fit into free memory.

use anyhow::Result;
use candle_core::Device;
use engine::Config;
use indicatif::BinaryBytes;
use models::{Footprint, KvPrecision};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::device::Computing;
use crate::eprintln;
use crate::failure::refusal;
use crate::flags::{GlobalFlags, Gpu};
use crate::loader::default_kv_tokens;
use crate::plan::{Place, Plan};
use crate::split::{Placement, SPLIT_KV_TOKENS};

/// Refuses models that do not fit, with the numbers. Those on an NVIDIA GPU are placed ([`Loading::placements`]).
fn check(
    device: &Device,
    models: &[(String, Footprint)],
    embedder: Option<&(String, u64)>,
    kv_tokens: usize,
    kv: KvPrecision,
) -> Result<()> {
    let limits = [free_bytes(), working_set(device)];
    let Some(memory) = limits.into_iter().flatten().min() else { return Ok(()) };
    let on_device =
        |(name, model): &(String, Footprint)| (name.clone(), if device.is_cpu() { *model } else { model.on_gpu() });
    let models = &models.iter().map(on_device).collect::<Vec<_>>()[..];
    Plan { models, embedder, kv_tokens, kv, place: Place::Shared, memory }.check()
}

/// Models about to be loaded.
#[derive(Debug, Clone, Copy)]
pub struct Loading<'a> {
    /// Language models by name.
    pub models: &'a [(String, Footprint)],
    /// The embedding model's name and bytes.
    pub embedder: Option<&'a (String, u64)>,
    /// Tokens in the KV cache of each language model, if the user asks for a number.
    pub requested: Option<usize>,
    pub default_tokens: usize,
    pub kv: KvPrecision,
    /// The numbers by which the GPUs are named, for messages.
    pub gpu_numbers: &'a [usize],
}

impl<'a> Loading<'a> {
    /// Models with the KV cache of the flags.
    pub fn of(
        models: &'a [(String, Footprint)],
        embedder: Option<&'a (String, u64)>,
        global: &'a GlobalFlags,
    ) -> Loading<'a> {
        let default_tokens = default_kv_tokens(models.iter().map(|(_, model)| model));
        let (requested, kv, gpu_numbers) = (global.kv_tokens, global.kv(), global.gpu_numbers());
        Loading { models, embedder, requested, default_tokens, kv, gpu_numbers }
    }

    /// The same where the flags leave the format of keys and values open: on the CPU 8 bits, if everything fits into `memory`
    /// only so, where that is known.
    #[must_use]
    pub(crate) fn with_fitting_kv(self, memory: Option<u64>, computing: &Computing, global: &GlobalFlags) -> Self {
        let Loading { models, embedder, requested, default_tokens, kv, .. } = self;
        let is_open = global.kv_is_auto() && computing.device.is_cpu();
        let Some(memory) = memory.filter(|_| is_open) else { return self };
        let kv_tokens = requested.unwrap_or(default_tokens);
        let plan = Plan { models, embedder, kv_tokens, kv, place: Place::Shared, memory };
        let fitting = plan.with_fitting_kv();
        if fitting.kv != kv {
            let [needed, free] = [plan.needed(), memory].map(BinaryBytes);
            eprintln!("keys and values are kept in {}: in {kv} {needed} would be needed, {free} free", fitting.kv);
        }
        Loading { kv: fitting.kv, ..self }
    }

    /// How the models are divided among devices; none if all are on the first device, where they fit or are checked when it is
    /// known what is free beside their weights (`engine::Config::for_device`).
    ///
    /// # Errors
    /// If they do not fit, with the numbers.
    pub(crate) fn placements(&self, computing: &Computing) -> Result<Option<Vec<Placement>>> {
        let Loading { models, embedder, requested, default_tokens, kv, .. } = *self;
        if !computing.device.is_cuda() {
            let kv_tokens = requested.unwrap_or(default_tokens);
            check(&computing.device, models, embedder, kv_tokens, kv)?;
            return Ok(None);
        }
        let Some(mut free) = computing.gpus.iter().map(free_on_gpu).collect::<Option<Vec<u64>>>() else {
            return Ok(None);
        };
        let placements = self.placements_on(&mut free, free_bytes())?;
        for ((name, _), placement) in self.models.iter().zip(placements.iter().flatten()) {
            eprintln!("{name} is divided, with a KV cache of {} tokens: {placement}", placement.kv_tokens);
        }
        Ok(placements)
    }

    /// The same for GPUs with `free` bytes each, less what is placed there afterwards, and a CPU; with `None` the CPU is not checked.
    ///
    /// # Errors
    /// As there.
    pub fn placements_on(&self, free: &mut [u64], on_cpu: Option<u64>) -> Result<Option<Vec<Placement>>> {
        let Loading { models, embedder, requested, default_tokens, kv, gpu_numbers } = *self;
        let on_gpu: Vec<_> = models.iter().map(|(name, model)| (name.clone(), model.on_gpu())).collect();
        if let [memory] = *free {
            let kv_tokens = requested.unwrap_or(default_tokens.min(SPLIT_KV_TOKENS));
            let plan = Plan { models: &on_gpu, embedder, kv_tokens, kv, place: Place::Gpu, memory };
            if plan.needed() <= memory {
                return Ok(None);
            }
        }
        // The embedding model is on the first.
        if let Some((name, bytes)) = embedder {
            free[0] = free[0].checked_sub(*bytes).ok_or_else(|| {
                let (needed, free) = (BinaryBytes(*bytes), BinaryBytes(free[0]));
                let what = format!("not enough memory: {needed} of {name} needed on the first GPU, {free} free");
                refusal(what, "name another GPU first, or choose a smaller embedding model")
            })?;
        }
        let mut placements = Vec::new();
        let mut on_cpu = on_cpu;
        for (name, model) in &on_gpu {
            let placement = Placement::with_kv(model, requested, default_tokens, kv, free).ok_or_else(|| {
                let what = format!("not enough memory: the GPU has no room for a layer of {name}");
                refusal(what, "compute on the CPU (--cpu), or choose a smaller model or variant")
            })?;
            let placement = placement.numbered(gpu_numbers);
            placement.check_cpu(name, on_cpu)?;
            on_cpu = on_cpu.map(|free| free.saturating_sub(placement.bytes_on(None)));
            for (gpu, free) in free.iter_mut().enumerate() {
                *free = free.saturating_sub(placement.bytes_on(Some(gpu)));
            }
            placements.push(placement);
        }
        Ok(Some(placements))
    }
}

/// Capacities of an engine for models that are loaded: those of their placements, which have KV caches of one size, or what the
/// device has left.
///
/// # Errors
/// If the KV cache does not fit.
pub(crate) fn config(computing: &Computing, loading: &Loading<'_>, placements: Option<&[Placement]>) -> Result<Config> {
    if let Some(placements) = placements {
        let smallest = placements.iter().min_by_key(|placement| placement.kv_tokens);
        return Ok(smallest.map(Placement::config).unwrap_or_default());
    }
    let models = loading.models.iter().map(|(_, footprint)| footprint);
    Ok(Config::for_device(&computing.device, models, loading.requested, loading.default_tokens, loading.kv)?)
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

/// Memory that models can use now on the devices that the flags name; `None` if the system does not report it.
pub fn free_for(flags: &GlobalFlags) -> Option<u64> {
    match flags.gpu() {
        Gpu::None => free_bytes(),
        Gpu::Auto | Gpu::Numbers(_) => {
            let Computing { device, gpus, .. } = Computing::of(flags).ok()?;
            let first = free_on_gpu(&device)?;
            gpus.iter().skip(1).try_fold(first, |sum, gpu| Some(sum.saturating_add(free_on_gpu(gpu)?)))
        }
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
        eprintln!("the memory of the GPU is not given back: {error}");
    }
    #[cfg(not(feature = "cuda"))]
    let _ = flags;
}

/// Memory that can be used without swapping, within the limits of a container; `None` if the system does not report it.
pub fn free_bytes() -> Option<u64> {
    let memory = MemoryRefreshKind::nothing().with_ram();
    let system = System::new_with_specifics(RefreshKind::nothing().with_memory(memory));
    let in_container = system.cgroup_limits().map(|limits| limits.total_memory.saturating_sub(limits.rss));
    free_within(system.total_memory(), system.available_memory(), in_container)
}

/// The same of a system with `total` bytes. A system or a container whose memory is full has 0 bytes free.
fn free_within(total: u64, available: u64, in_container: Option<u64>) -> Option<u64> {
    (total > 0).then(|| in_container.map_or(available, |free| free.min(available)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use models::manifest::built_in;

    use super::*;
    use crate::flags::tests::Flags;

    const GIB: u64 = 1 << 30;

    #[test]
    fn full_memory_is_not_unknown_memory() {
        assert_eq!(free_within(8 * GIB, 2 * GIB, None), Some(2 * GIB));
        assert_eq!(free_within(8 * GIB, 2 * GIB, Some(GIB)), Some(GIB));
        assert_eq!(free_within(8 * GIB, 2 * GIB, Some(0)), Some(0));
        assert_eq!(free_within(8 * GIB, 0, None), Some(0));
        assert_eq!(free_within(0, 0, None), None);
    }

    #[test]
    fn the_cpu_keeps_keys_and_values_in_8_bits_where_they_fit_only_so_unless_a_format_is_named() {
        let manifest = built_in().iter().find(|manifest| manifest.name == "qwen2.5-0.5b-instruct").unwrap();
        let footprint = Footprint::of_manifest(manifest.choose("q4_k_m").unwrap()).unwrap();
        let requested = usize::try_from(6 * GIB / footprint.kv_bytes_per_token).ok();
        let models = [("qwen".to_owned(), footprint)];
        let kept = |memory: Option<u64>, kv: &[&str]| {
            let global = Flags::parse_from([&["memlocal", "--cpu"], kv].concat()).global;
            let (computing, loading) = (Computing::of(&global).unwrap(), Loading::of(&models, None, &global));
            let kept = Loading { requested, ..loading }.with_fitting_kv(memory, &computing, &global).kv;
            (kept, kept == global.kv())
        };
        assert_eq!(kept(Some(6 * GIB), &[]).0, KvPrecision::Q8_0);
        assert_eq!(kept(Some(6 * GIB), &["--kv", "f16"]).0, KvPrecision::F16);
        for memory in [Some(2 * GIB), Some(8 * GIB), None] {
            assert!(kept(memory, &[]).1, "{memory:?}: no format fits, any, or it is not known");
        }
    }

    #[test]
    fn devices_are_shown_by_the_numbers_that_name_them() {
        let manifest = built_in().iter().find(|manifest| manifest.name == "qwen2.5-7b-instruct").unwrap();
        let footprint = Footprint::of_manifest(manifest.choose("bf16").unwrap()).unwrap();
        let loading = Loading {
            models: &[("qwen".to_owned(), footprint)],
            embedder: None,
            requested: Some(8192),
            default_tokens: 8192,
            kv: KvPrecision::F16,
            gpu_numbers: &[2, 3],
        };
        let placements = loading.placements_on(&mut [6 * GIB, 6 * GIB], None).unwrap().unwrap();
        let devices: Vec<String> = placements[0].shares.iter().map(crate::split::Share::device).collect();
        assert_eq!(devices, ["CPU", "GPU 2", "GPU 3"]);
        assert_eq!(placements[0].shares[1].gpu, Some(0), "the first of them");
        let refused = loading.placements_on(&mut [6 * GIB, 6 * GIB], Some(GIB)).unwrap_err().to_string();
        assert!(refused.contains("GPU 2 layers") && refused.contains("GPU 3 layers"), "{refused}");
    }

    #[test]
    fn the_embedding_model_is_on_the_first_gpu_or_refused() {
        let manifest = built_in().iter().find(|manifest| manifest.name == "qwen2.5-7b-instruct").unwrap();
        let models = [("qwen".to_owned(), Footprint::of_manifest(manifest.choose("bf16").unwrap()).unwrap())];
        let embedder = ("bge".to_owned(), 2 * GIB);
        let loading = Loading {
            models: &models,
            embedder: Some(&embedder),
            requested: Some(8192),
            default_tokens: 8192,
            kv: KvPrecision::F16,
            gpu_numbers: &[],
        };
        let mut free = [4 * GIB, 24 * GIB];
        let placements = loading.placements_on(&mut free, None).unwrap().unwrap();
        assert_eq!((placements[0].bytes_on(Some(0)), free[0]), (0, 2 * GIB));
        let refused = loading.placements_on(&mut [GIB, 24 * GIB], None).unwrap_err().to_string();
        assert_eq!(refused, "not enough memory: 2.00 GiB of bge needed on the first GPU, 1.00 GiB free");
    }
}
