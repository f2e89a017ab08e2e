//! Checks, before any model is loaded, that all of them and their KV caches fit into free memory.

use anyhow::Result;
use indicatif::BinaryBytes;
use models::Footprint;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::failure::refusal;

/// Refuses models that do not fit, with the numbers.
pub fn check(models: &[(String, Footprint)], embedder: Option<&(String, u64)>, kv_tokens: usize) -> Result<()> {
    let Some(free) = free_bytes() else { return Ok(()) };
    let keys_and_values = |model: &Footprint| model.kv_bytes_per_token.saturating_mul(kv_tokens as u64);
    let need = models.iter().fold(embedder.map_or(0, |(_, bytes)| *bytes), |sum, (_, model)| {
        sum.saturating_add(model.weight_bytes).saturating_add(keys_and_values(model))
    });
    if need <= free {
        return Ok(());
    }
    let parts = models.iter().map(|(name, model)| {
        let (weights, kept) = (BinaryBytes(model.weight_bytes), BinaryBytes(keys_and_values(model)));
        format!("{name} takes {weights} for weights and {kept} for keys and values of {kv_tokens} tokens")
    });
    let embedder = embedder.map(|(name, bytes)| format!("{name} takes {}", BinaryBytes(*bytes)));
    let parts = parts.chain(embedder).collect::<Vec<_>>().join("; ");
    Err(refusal(
        format!("not enough memory: {parts}; {} are free", BinaryBytes(free)),
        "choose a smaller model or variant (memlocal models list), or set a smaller --kv-tokens",
    ))
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
