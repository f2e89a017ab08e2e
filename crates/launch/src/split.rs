//! Placement of the layers of a language model that is larger than a GPU: on GPUs, and on the CPU.

use std::fmt;

use anyhow::Result;
use engine::{Config, GPU_OVERHEAD, gpu_step_bytes};
use indicatif::BinaryBytes;
use models::{Footprint, KvPrecision, Part};

use crate::failure::refusal;

/// Tokens of the KV cache of a model that shares its layers with the CPU, unless the user asks for another number: a larger
/// cache leaves fewer layers on the GPUs.
pub const SPLIT_KV_TOKENS: usize = 8192;

/// What one device holds of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// `None` is the CPU, `Some(0)` the first of the GPUs that were named.
    pub gpu: Option<usize>,
    /// The number by which that GPU was named.
    pub gpu_number: Option<usize>,
    pub part: Part,
    pub weight_bytes: u64,
    pub kv_bytes: u64,
    /// Activations and logits of the largest step.
    pub workspace_bytes: u64,
}

impl Share {
    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.weight_bytes.saturating_add(self.kv_bytes).saturating_add(self.workspace_bytes)
    }

    /// The name of the device.
    pub fn device(&self) -> String {
        self.gpu_number.map_or_else(|| "CPU".to_owned(), |gpu| format!("GPU {gpu}"))
    }
}

/// What each device holds of a model, in the order in which they run. The CPU has the first layers, so hidden states are
/// copied to a GPU once a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub shares: Vec<Share>,
    pub kv_tokens: usize,
}

impl Placement {
    /// Bytes of the smallest share of a model that a GPU can have: the head and a layer.
    pub fn least_bytes(model: &Footprint, kv_tokens: usize, kv: KvPrecision) -> u64 {
        let layer_bytes = model.gpu.layer.saturating_add(layer_kv_bytes(model, kv_tokens, kv));
        (gpu_step_bytes([model]) + head_bytes(model)).saturating_add(layer_bytes)
    }

    /// Places a model on GPUs with `free` bytes, each with as many layers as fit, and the rest on the CPU. The head is on the
    /// last GPU that has room for it and a layer; none if no GPU has.
    pub fn of(model: &Footprint, kv_tokens: usize, kv: KvPrecision, free: &[u64]) -> Option<Placement> {
        let shape = model.shape;
        let layer_kv = layer_kv_bytes(model, kv_tokens, kv);
        let layer_bytes = model.gpu.layer.saturating_add(layer_kv);
        let head_bytes = head_bytes(model);
        let workspace_bytes = Config::on_gpu().workspace_bytes(model);
        let mut rest = shape.layers;
        let mut shares = Vec::new();
        for (gpu, free) in free.iter().enumerate().rev() {
            let head = shares.is_empty();
            let fixed = GPU_OVERHEAD + workspace_bytes + if head { head_bytes } else { 0 };
            let fitting = free.checked_sub(fixed).and_then(|room| room.checked_div(layer_bytes)).unwrap_or(0);
            let layers = rest.min(usize::try_from(fitting).unwrap_or(usize::MAX));
            if layers == 0 && head {
                continue;
            }
            rest -= layers;
            shares.push(Share {
                gpu: Some(gpu),
                gpu_number: Some(gpu),
                part: Part { layers: rest..rest + layers, table: head && shape.tied, head },
                weight_bytes: layers as u64 * model.gpu.layer + if head { head_bytes } else { 0 },
                kv_bytes: layers as u64 * layer_kv,
                workspace_bytes: GPU_OVERHEAD + workspace_bytes,
            });
        }
        if shares.is_empty() {
            return None;
        }
        // A table that only embeds tokens is read a few rows at a time, which the CPU does as well.
        let table_bytes = if shape.tied { 0 } else { model.cpu.table };
        shares.push(Share {
            gpu: None,
            gpu_number: None,
            part: Part { layers: 0..rest, table: !shape.tied, head: false },
            weight_bytes: rest as u64 * model.cpu.layer + table_bytes,
            kv_bytes: rest as u64 * layer_kv,
            workspace_bytes: if rest > 0 { workspace_bytes } else { 0 },
        });
        shares.retain(|share| !share.part.layers.is_empty() || share.part.table);
        shares.reverse();
        Some(Placement { shares, kv_tokens })
    }

    /// Places a model with the KV cache that the user asks for; else with all of its context if the GPUs hold that, or with
    /// [`SPLIT_KV_TOKENS`].
    pub fn with_kv(
        model: &Footprint,
        requested: Option<usize>,
        default_tokens: usize,
        kv: KvPrecision,
        free: &[u64],
    ) -> Option<Placement> {
        let of = |kv_tokens: usize| Placement::of(model, kv_tokens, kv, free);
        match requested {
            Some(kv_tokens) => of(kv_tokens),
            None => of(default_tokens)
                .filter(|placement| placement.cpu_layers() == 0)
                .or_else(|| of(default_tokens.min(SPLIT_KV_TOKENS))),
        }
    }

    /// The same on GPUs that were named by these numbers; without any they have the numbers from 0.
    #[must_use]
    pub fn numbered(mut self, numbers: &[usize]) -> Placement {
        for share in &mut self.shares {
            share.gpu_number = share.gpu.map(|gpu| numbers.get(gpu).copied().unwrap_or(gpu));
        }
        self
    }

    /// Layers that the CPU computes.
    pub fn cpu_layers(&self) -> usize {
        self.shares.iter().filter(|share| share.gpu.is_none()).map(|share| share.part.layers.len()).sum()
    }

    /// Bytes that it takes of a device.
    pub fn bytes_on(&self, gpu: Option<usize>) -> u64 {
        self.shares.iter().filter(|share| share.gpu == gpu).map(Share::bytes).sum()
    }

    /// Capacities of an engine for it.
    pub fn config(&self) -> Config {
        // On the CPU the time of a step grows with its rows.
        let config = if self.cpu_layers() > 0 { Config::default() } else { Config::on_gpu() };
        Config { kv_tokens: self.kv_tokens, ..config }
    }

    /// Refuses a placement whose share of the CPU does not fit into the memory that is free there.
    ///
    /// # Errors
    /// With the numbers.
    pub fn check_cpu(&self, name: &str, free: Option<u64>) -> Result<()> {
        let needed = self.bytes_on(None);
        let Some(free) = free.filter(|free| needed > *free) else { return Ok(()) };
        let what = format!(
            "not enough memory: {} of {name} needed on the CPU beside the GPU ({self}), {} free",
            BinaryBytes(needed),
            BinaryBytes(free)
        );
        Err(refusal(
            what,
            "a smaller KV cache (--kv-tokens) leaves more layers to the GPU, or choose a smaller model or variant",
        ))
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares: Vec<String> =
            self.shares.iter().map(|share| format!("{} {}", share.device(), held(&share.part))).collect();
        f.write_str(&shares.join(", "))
    }
}

/// What a part has, in words.
pub fn held(part: &Part) -> String {
    let layers = (!part.layers.is_empty()).then(|| format!("layers {} to {}", part.layers.start, part.layers.end - 1));
    let table = part.table.then(|| "token table".to_owned());
    let head = part.head.then(|| "head".to_owned());
    [table, layers, head].into_iter().flatten().collect::<Vec<_>>().join(" + ")
}

/// Keys and values of one layer.
fn layer_kv_bytes(model: &Footprint, kv_tokens: usize, kv: KvPrecision) -> u64 {
    kv.bytes(model.kv_bytes_per_token).saturating_mul(kv_tokens as u64) / model.shape.layers as u64
}

/// The output matrix on a GPU.
fn head_bytes(model: &Footprint) -> u64 {
    if model.shape.tied { model.gpu.table } else { model.gpu.head }
}

#[cfg(test)]
mod tests {
    use models::WeightBytes;
    use models::manifest::built_in;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn footprint(name: &str, variant: &str) -> Footprint {
        let manifest = built_in().iter().find(|manifest| manifest.name == name).unwrap();
        Footprint::of_manifest(manifest.choose(variant).unwrap()).unwrap()
    }

    #[test]
    fn a_table_of_gpus_by_models_is_decided_by_the_computed_bytes() {
        let models = ["0.5b", "1.5b", "3b", "7b", "14b", "32b", "72b"];
        let cards: [&[u64]; 7] = [&[8], &[12], &[16], &[24], &[24, 24], &[12, 24], &[80]];
        for (size, variant) in models.iter().flat_map(|size| [(size, "q4_k_m"), (size, "bf16")]) {
            let model = footprint(&format!("qwen2.5-{size}-instruct"), variant);
            let layers = model.shape.layers as u64;
            let kv = model.kv_bytes_per_token * 8192 / layers;
            for card in cards {
                let free: Vec<u64> = card.iter().map(|gib| gib * GIB).collect();
                let placed = Placement::of(&model, 8192, KvPrecision::F16, &free);
                let dense_table = (2 * model.shape.vocab * model.shape.hidden) as u64;
                let head = if model.shape.tied { dense_table } else { model.gpu.head };
                let fixed = gpu_step_bytes([&model]);
                let room =
                    |free: u64, head: u64| (free.saturating_sub(head + fixed) / (model.gpu.layer + kv)).min(layers);
                let on_last = room(free[free.len() - 1], head);
                let Some(placed) = placed else {
                    assert_eq!(on_last, 0, "{size} {variant} on {card:?}");
                    continue;
                };
                let on_others = if free.len() > 1 { room(free[0], 0) } else { 0 };
                let on_cpu = layers.saturating_sub(on_last + on_others);
                assert_eq!(placed.cpu_layers() as u64, on_cpu, "{size} {variant} on {card:?}");
                for (gpu, free) in free.iter().enumerate() {
                    assert!(placed.bytes_on(Some(gpu)) <= *free, "{size} {variant} on {card:?}: {placed:?}");
                }
                let mut next = 0;
                for share in &placed.shares {
                    assert_eq!(share.part.layers.start, next);
                    next = share.part.layers.end;
                }
                assert_eq!(next as u64, layers, "every layer is somewhere");
                let weights: u64 = placed.shares.iter().map(|share| share.weight_bytes).sum();
                let near = weights as f64 / (model.weights.all.max(dense_table)) as f64;
                assert!((0.97..1.7).contains(&near), "{size} {variant}: {near}");
            }
        }
    }

    #[test]
    fn layers_that_do_not_fit_on_a_gpu_are_on_the_cpu() {
        let model = footprint("qwen2.5-14b-instruct", "q4_k_m");
        let on =
            |requested, free: &[u64]| Placement::with_kv(&model, requested, 32_768, KvPrecision::F16, free).unwrap();
        let table_only = on(None, &[12 * GIB]);
        assert_eq!((table_only.cpu_layers(), table_only.kv_tokens), (0, SPLIT_KV_TOKENS), "{table_only}");
        let placed = on(None, &[10 * GIB]);
        assert_eq!(placed.kv_tokens, SPLIT_KV_TOKENS);
        assert!((1..12).contains(&placed.cpu_layers()), "{placed}");
        let cpu = &placed.shares[0];
        assert!(cpu.gpu.is_none() && cpu.part.table && !cpu.part.head, "the token table is on the CPU: {placed}");
        let longer = on(Some(32_768), &[10 * GIB]);
        assert!(longer.cpu_layers() > placed.cpu_layers(), "{longer}");
        let whole = on(None, &[12 * GIB, 12 * GIB]);
        assert_eq!((whole.cpu_layers(), whole.kv_tokens), (0, 32_768), "two such cards hold all of it: {whole}");
        placed.check_cpu("qwen2.5-14b", Some(16 * GIB)).unwrap();
        let refused = placed.check_cpu("qwen2.5-14b", Some(GIB / 2)).unwrap_err().to_string();
        assert!(
            refused.contains("of qwen2.5-14b needed on the CPU") && refused.contains("512.00 MiB free"),
            "{refused}"
        );
        let least = Placement::least_bytes(&model, 8192, KvPrecision::F16);
        assert!(least > GIB, "{least}");
        assert_eq!(
            Placement::of(&model, 8192, KvPrecision::F16, &[least - 1]),
            None,
            "no room for the head and a layer"
        );
        let smallest = Placement::of(&model, 8192, KvPrecision::F16, &[least]).unwrap();
        assert_eq!(smallest.cpu_layers(), 47, "{smallest}");
        assert_eq!(Placement::of(&model, 8192, KvPrecision::F16, &[]), None);
        let small = footprint("qwen2.5-7b-instruct", "q4_k_m");
        let placed = Placement::of(&small, 8192, KvPrecision::F16, &[8 * GIB]).unwrap();
        assert_eq!(placed.cpu_layers(), 0, "8 GiB hold all layers of a 7B: {placed}");
    }

    #[test]
    fn shares_are_named_in_the_order_in_which_they_run() {
        let model = footprint("qwen2.5-7b-instruct", "bf16");
        let placed = Placement::of(&model, 8192, KvPrecision::F16, &[6 * GIB, 6 * GIB]).unwrap();
        let text = placed.to_string();
        let [cpu, first, second] = &placed.shares[..] else { panic!("{text}") };
        assert_eq!(text, format!("CPU {}, GPU 0 {}, GPU 1 {}", held(&cpu.part), held(&first.part), held(&second.part)));
        assert!(text.starts_with("CPU token table + layers 0 to ") && text.ends_with(" to 27 + head"), "{text}");
    }

    #[test]
    fn the_head_is_on_the_last_gpu_that_has_room_for_it() {
        let model = footprint("qwen2.5-7b-instruct", "bf16");
        let on = |free: &[u64]| Placement::of(&model, 8192, KvPrecision::F16, free).unwrap();
        let [alone, beside_small] = [on(&[8 * GIB]), on(&[8 * GIB, GIB])];
        assert_eq!(beside_small, alone, "the second GPU has no room for the head and a layer");
        assert_eq!(beside_small.bytes_on(Some(1)), 0);
        let between = on(&[6 * GIB, 6 * GIB, GIB]);
        let heads: Vec<bool> = between.shares.iter().map(|share| share.part.head).collect();
        assert_eq!((heads, between.shares[2].gpu), (vec![false, false, true], Some(1)), "{between}");
    }

    #[test]
    fn layers_on_gpus_have_their_size_there_and_those_on_the_cpu_theirs() {
        let mut model = footprint("qwen2.5-14b-instruct", "q4_k_m");
        let WeightBytes { all, layer, table, head } = model.cpu;
        model.gpu = WeightBytes { all: 2 * all, layer: 2 * layer, table: 2 * table, head: 2 * head };
        for model in [model, model.on_gpu()] {
            let placed = Placement::of(&model, 8192, KvPrecision::F16, &[10 * GIB]).unwrap();
            let [cpu, gpu] = &placed.shares[..] else { panic!("{placed}") };
            let [on_cpu, on_gpu] = [cpu, gpu].map(|share| share.part.layers.len() as u64);
            assert_eq!(cpu.weight_bytes, on_cpu * layer + table);
            assert_eq!(gpu.weight_bytes, 2 * (on_gpu * layer + head));
            assert!(gpu.bytes() <= 10 * GIB && gpu.bytes() + 2 * layer > 9 * GIB, "{placed}");
        }
        let least = Placement::least_bytes(&model, 8192, KvPrecision::F16);
        assert!(least > 2 * (layer + head), "{least}");
    }
}
