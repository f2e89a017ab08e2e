//! The device that computes: the processor, or a card where the build has CUDA; and what fits on the card.

use anyhow::Result;
use candle_core::Device;
use engine::Config;
use models::Footprint;

use crate::args::Gpu;
#[cfg(not(feature = "cuda"))]
use crate::failure::refusal;

/// The device that was asked for.
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
        "leave --gpu out, or use a build for GPUs (cargo build --release --features cuda)",
    ))
}

#[cfg(feature = "cuda")]
fn open(number: usize) -> Result<Device> {
    let hint = "leave --gpu out to compute on the CPU; a GPU needs a driver of NVIDIA that is as new as the build";
    let device = kernels::cuda::device::open(number).map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        crate::failure::refusal(format!("GPU {number} cannot be used: {error}{source}"), hint)
    })?;
    if kernels::cuda::quantised_products() == kernels::cuda::QuantisedProducts::Wrong {
        eprintln!(
            "GPU {number} multiplies quantised weights wrongly: they are kept as bf16 on it, which takes more memory"
        );
    }
    Ok(device)
}

/// The sizes to start an engine with, once the models are loaded. On the processor what was asked for; on a card the keys
/// and values take what is free but for a reserve, unless a number was given.
#[cfg_attr(not(feature = "cuda"), expect(unused_variables, clippy::unnecessary_wraps))]
pub fn config(
    device: &Device,
    models: &[(String, Footprint)],
    asked_tokens: Option<usize>,
    kv_tokens: usize,
) -> Result<Config> {
    #[cfg(feature = "cuda")]
    if device.is_cuda() {
        let kv_tokens = on_card(device, models, asked_tokens)?;
        // A card computes many rows as fast as few.
        return Ok(Config { kv_tokens, step_tokens: 2048, max_running: 64, ..Config::default() });
    }
    Ok(Config { kv_tokens, ..Config::default() })
}

/// Memory of a card that is left for what a step computes in between: 2,048 rows of the widest layer, and logits.
#[cfg(feature = "cuda")]
const RESERVE: u64 = 3 << 30;

/// Fewer tokens than this are of no use.
#[cfg(feature = "cuda")]
const FEWEST_TOKENS: u64 = 2048;

#[cfg(feature = "cuda")]
fn on_card(device: &Device, models: &[(String, Footprint)], asked_tokens: Option<usize>) -> Result<usize> {
    use crate::failure::refusal;
    use indicatif::BinaryBytes;
    let free = kernels::cuda::device::device_info(device)?.free as u64;
    let per_token: u64 = models.iter().map(|(_, model)| model.kv_bytes_per_token).sum();
    let room = free.saturating_sub(RESERVE) / per_token.max(1);
    let wanted = asked_tokens.map_or(FEWEST_TOKENS, |tokens| tokens as u64);
    if per_token > 0 && room < wanted {
        return Err(refusal(
            format!(
                "there is no room on the GPU for keys and values of {wanted} tokens: {} are free beside the models, of \
                 which {} are kept for computing, and a token takes {}",
                BinaryBytes(free),
                BinaryBytes(RESERVE),
                BinaryBytes(per_token)
            ),
            "choose a smaller model or variant (memlocal models list), or keep fewer tokens with --kv-tokens",
        ));
    }
    Ok(asked_tokens.unwrap_or(usize::try_from(room).unwrap_or(usize::MAX)))
}
