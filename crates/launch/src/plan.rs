//! What models take of a device's memory, before any of them is loaded.

use engine::{Config, gpu_step_bytes};
use indicatif::BinaryBytes;
use models::manifest::{Choice, built_in};
use models::{Footprint, KvPrecision, PAGE_TOKENS};

use crate::failure::refusal;
use crate::split::Placement;

pub use engine::MIN_KV_TOKENS;

/// Models on one device.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// Language models by name, with their footprints at that place.
    pub models: &'a [(String, Footprint)],
    /// The embedding model's name and bytes.
    pub embedder: Option<&'a (String, u64)>,
    /// Tokens in the KV cache of each language model.
    pub kv_tokens: usize,
    /// How they are kept.
    pub kv: KvPrecision,
    pub place: Place,
    /// Bytes that are free on the device.
    pub memory: u64,
}

/// Bytes of one model on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelBytes {
    /// All of it.
    pub whole: u64,
    /// As far as it can be made smaller to fit: the smallest part with which a GPU can share it with the CPU, or with keys and
    /// values in 8 bits on the CPU.
    pub least: u64,
}

impl ModelBytes {
    /// Those of a model with a KV cache of `kv_tokens`, or of `split_kv_tokens` where its layers are divided.
    pub(crate) fn of(
        model: &(String, Footprint),
        kv_tokens: usize,
        split_kv_tokens: usize,
        kv: KvPrecision,
        place: Place,
    ) -> ModelBytes {
        let models = std::slice::from_ref(model);
        let whole = Plan { models, embedder: None, kv_tokens, kv, place, memory: 0 }.needed();
        // Only NVIDIA GPUs share a model with the CPU.
        let is_divided = place == Place::Gpu && cfg!(feature = "cuda");
        let least = if is_divided { Placement::least_bytes(&model.1, split_kv_tokens, kv) } else { whole };
        ModelBytes { whole, least: least.min(whole) }
    }
}

/// Where models run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The CPU, or a GPU that shares its memory.
    Shared,
    /// An NVIDIA GPU.
    Gpu,
}

impl Plan<'_> {
    /// The parts with their bytes.
    pub fn parts(&self) -> Vec<(String, u64)> {
        let mut parts = Vec::new();
        for (name, model) in self.models {
            parts.push((format!("weights of {name}"), model.weights.all));
            let kept = format!("keys and values of {} tokens in {}", self.kv_tokens, self.kv);
            parts.push((kept, self.kv.bytes(model.kv_bytes_per_token).saturating_mul(self.kv_tokens as u64)));
        }
        parts.extend(self.embedder.map(|(name, bytes)| (format!("weights of {name}"), *bytes)));
        parts.push(("workspace of a step".to_owned(), self.workspace_bytes()));
        parts
    }

    /// Bytes of all parts.
    pub fn needed(&self) -> u64 {
        self.parts().iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Activations and logits of the largest step. On an NVIDIA GPU it is what the engine keeps free.
    fn workspace_bytes(&self) -> u64 {
        let models = self.models.iter().map(|(_, model)| model);
        match self.place {
            Place::Gpu => gpu_step_bytes(models),
            Place::Shared => models.map(|model| Config::default().workspace_bytes(model)).max().unwrap_or(0),
        }
    }

    /// The largest KV cache, in tokens, with which everything fits; none if it would be too small to be of use.
    pub fn kv_tokens_that_fit(&self) -> Option<usize> {
        let others = Plan { kv_tokens: 0, ..*self }.needed();
        let per_token: u64 = self.models.iter().map(|(_, model)| self.kv.bytes(model.kv_bytes_per_token)).sum();
        let tokens = self.memory.checked_sub(others)?.checked_div(per_token)? / PAGE_TOKENS as u64 * PAGE_TOKENS as u64;
        (tokens >= MIN_KV_TOKENS).then(|| usize::try_from(tokens).unwrap_or(usize::MAX))
    }

    /// The model with the largest weights, among those with a manifest, that would fit in place of these with a KV cache of
    /// 4,096 tokens, and the bytes that it needs.
    pub fn model_that_fits(&self) -> Option<(Choice<'static>, u64)> {
        let choices =
            built_in().iter().flat_map(|manifest| manifest.variants.iter().map(|variant| Choice { manifest, variant }));
        let by = self.models.first().map(|(_, model)| model.by).unwrap_or_default();
        let fits = |choice: Choice<'static>| {
            let model = Footprint::of_manifest(choice)?.computed_by(by);
            let models = [(choice.to_string(), if self.place == Place::Gpu { model.on_gpu() } else { model })];
            let plan = Plan { models: &models, kv_tokens: 4096, memory: 0, ..*self };
            Some((choice, models[0].1.weights.all, plan.needed())).filter(|(.., needed)| *needed <= self.memory)
        };
        let largest = choices.filter_map(fits).max_by_key(|(_, weights, _)| *weights)?;
        Some((largest.0, largest.2))
    }

    /// True if keys and values in half the memory would make everything fit.
    fn fits_in_8_bits(&self) -> bool {
        let smaller = Plan { kv: KvPrecision::Q8_0, ..*self };
        let can_be = self.models.iter().all(|(_, model)| has_keys_in_8_bits(model));
        self.place == Place::Shared && can_be && self.kv != KvPrecision::Q8_0 && smaller.needed() <= self.memory
    }

    /// The same with keys and values in 8 bits if everything fits only so.
    #[must_use]
    pub fn with_fitting_kv(self) -> Self {
        if self.needed() <= self.memory || !self.fits_in_8_bits() {
            return self;
        }
        Plan { kv: KvPrecision::Q8_0, ..self }
    }

    /// Refuses what does not fit, with the numbers and what would fit.
    pub fn check(&self) -> anyhow::Result<()> {
        let (needed, memory) = (self.needed(), self.memory);
        if needed <= memory {
            return Ok(());
        }
        let part = |(name, bytes): (String, u64)| format!("{name} {}", BinaryBytes(bytes));
        let parts = self.parts().into_iter().map(part).collect::<Vec<_>>().join(", ");
        let hint = match (self.kv_tokens_that_fit(), self.model_that_fits()) {
            (Some(tokens), _) if self.fits_in_8_bits() => {
                format!("a smaller KV cache fits: --kv-tokens {tokens}; on the CPU this one fits in 8 bits: --kv q8_0")
            }
            (Some(tokens), _) => format!("a smaller KV cache fits: --kv-tokens {tokens}"),
            (None, Some((choice, bytes))) => {
                format!("choose a smaller model or variant: {choice} needs {} with 4096 tokens", BinaryBytes(bytes))
            }
            (None, None) => "no model in `memlocal models list` fits beside what is there".to_owned(),
        };
        let what = format!("not enough memory: {} needed ({parts}), {} free", BinaryBytes(needed), BinaryBytes(memory));
        Err(refusal(what, hint))
    }
}

/// True if keys and values can be kept in blocks of 32.
pub(crate) fn has_keys_in_8_bits(model: &Footprint) -> bool {
    model.shape.head_dim.is_multiple_of(32)
}

#[cfg(test)]
mod tests {
    use models::ComputedBy;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn footprint(name: &str, variant: &str) -> (String, Footprint) {
        let manifest = built_in().iter().find(|manifest| manifest.name == name).unwrap();
        let choice = manifest.choose(variant).unwrap();
        (choice.to_string(), Footprint::of_manifest(choice).unwrap())
    }

    /// Published numbers of weights in billions, and bytes of keys and values of a token, computed by hand from layers, key
    /// heads and head size: 2 · layers · heads · dim · 2 bytes.
    const MODELS: [(&str, f64, u64); 7] = [
        ("qwen2.5-0.5b-instruct", 0.494, 12_288),
        ("qwen2.5-1.5b-instruct", 1.544, 28_672),
        ("qwen2.5-3b-instruct", 3.086, 36_864),
        ("qwen2.5-7b-instruct", 7.616, 57_344),
        ("qwen2.5-14b-instruct", 14.77, 196_608),
        ("qwen2.5-32b-instruct", 32.76, 262_144),
        ("qwen2.5-72b-instruct", 72.71, 327_680),
    ];

    #[test]
    fn weights_and_keys_are_those_of_the_published_dimensions() {
        for (name, billions, kv_bytes) in MODELS {
            let (_, model) = footprint(name, "bf16");
            assert_eq!(model.kv_bytes_per_token, kv_bytes, "{name}");
            assert!((model.shape.parameters() as f64 / 1e9 / billions - 1.0).abs() < 0.005, "{name}");
            let bf16 = 2e9 * billions;
            // Rounding to 64 MiB where no size is certain is much for the smallest.
            let near = |bytes: u64, want: f64| (bytes as f64 - want).abs() < 0.01 * want + f64::from(1 << 26);
            assert!(near(model.weights.all, bf16), "{name}: {} for {bf16}", model.weights.all);
            let small = footprint(name, "q4_k_m").1.weights.all as f64 / bf16;
            assert!((0.28..0.51).contains(&small), "{name}: {small}");
        }
    }

    #[test]
    fn a_table_of_gpus_by_models_is_decided_by_the_computed_bytes() {
        // The largest KV cache in tokens, or `-`, on GPUs of 8, 12, 16, 24 and 80 GiB, of which the engine keeps a part for steps.
        let cards = [8, 12, 16, 24, 80];
        for (name, variant) in MODELS.iter().flat_map(|(name, ..)| [(*name, "q4_k_m"), (*name, "bf16")]) {
            let (choice, on_cpu) = footprint(name, variant);
            let models = [(choice, on_cpu.on_gpu())];
            let model = models[0].1;
            // The kernels for GPUs keep the token table in 16 bits.
            let table = (2 * model.shape.vocab * model.shape.hidden) as u64;
            let all = on_cpu.cpu.all + table.saturating_sub(on_cpu.cpu.table);
            for card in cards {
                let memory = card * GIB;
                let plan = Plan {
                    models: &models,
                    embedder: None,
                    kv_tokens: 8192,
                    kv: KvPrecision::F16,
                    place: Place::Gpu,
                    memory,
                };
                let rest = memory as i128 - i128::from(gpu_step_bytes([&model])) - i128::from(all);
                let tokens = rest.div_euclid(i128::from(model.kv_bytes_per_token)) / 32 * 32;
                let want = (tokens >= 2048).then(|| usize::try_from(tokens).unwrap());
                assert_eq!(plan.kv_tokens_that_fit(), want, "{name}:{variant} on {card} GiB");
                assert_eq!(plan.check().is_ok(), tokens >= 8192, "{name}:{variant} on {card} GiB");
                let fitting = plan.model_that_fits().unwrap();
                assert!(fitting.1 <= memory, "{fitting:?}");
            }
        }
        let on = |name, variant, card| {
            let (choice, model) = footprint(name, variant);
            let models = [(choice, model.on_gpu())];
            let memory = card * GIB;
            Plan { models: &models, embedder: None, kv_tokens: 0, kv: KvPrecision::F16, place: Place::Gpu, memory }
                .kv_tokens_that_fit()
        };
        assert!(on("qwen2.5-7b-instruct", "q4_k_m", 12).is_some());
        assert!(on("qwen2.5-7b-instruct", "q4_k_m", 8) > Some(16_384), "with the token table in 16 bits");
        assert!(on("qwen2.5-32b-instruct", "q4_k_m", 24) > Some(8192));
        assert!(
            on("qwen2.5-14b-instruct", "q4_k_m", 16).is_some() && on("qwen2.5-14b-instruct", "q4_k_m", 8).is_none()
        );
        assert!(on("qwen2.5-72b-instruct", "q4_k_m", 80).is_some() && on("qwen2.5-72b-instruct", "bf16", 80).is_none());
    }

    #[test]
    fn the_portable_backend_takes_four_bytes_for_a_16_bit_weight_and_as_many_as_stored_for_a_quantised_one() {
        let bytes = |name: &str, variant: &str, by: ComputedBy| {
            let model = footprint(name, variant).1;
            let of = |model: Footprint| (model.weights.all, model.weights.layer);
            let [on_cpu, on_gpu] = [model.computed_by(by), model.computed_by(by).on_gpu()].map(of);
            assert_eq!(on_cpu, on_gpu, "{name}:{variant}");
            assert_eq!(model.computed_by(by).computed_by(ComputedBy::Kernels), model);
            (of(model), on_cpu)
        };
        for (name, billions, _) in MODELS {
            let (kernels, portable) = bytes(name, "bf16", ComputedBy::Portable);
            assert_eq!(portable, (2 * kernels.0, 2 * kernels.1), "{name}");
            let f32 = 4e9 * billions;
            assert!(
                (portable.0 as f64 - f32).abs() < 0.01 * f32 + f64::from(1 << 27),
                "{name}: {portable:?} for {f32}"
            );
            let (kernels, on_metal) = bytes(name, "bf16", ComputedBy::PortableOnMetal);
            assert_eq!(kernels, on_metal, "{name}");
            let (kernels, portable) = bytes(name, "q4_k_m", ComputedBy::Portable);
            assert_eq!(kernels, portable, "{name}");
        }
    }

    #[test]
    fn models_that_would_fit_are_counted_as_the_same_backend_holds_them() {
        let (name, model) = footprint("qwen2.5-7b-instruct", "bf16");
        let largest = [
            (ComputedBy::Kernels, "qwen2.5-72b-instruct:bf16", 72.71 * 2e9),
            (ComputedBy::Portable, "qwen2.5-32b-instruct:bf16", 32.76 * 4e9),
        ];
        for (by, want, weight_bytes) in largest {
            let models = [(name.clone(), model.computed_by(by))];
            for place in [Place::Shared, Place::Gpu] {
                let (kv, memory) = (KvPrecision::F16, 160 * GIB);
                let plan = Plan { models: &models, embedder: None, kv_tokens: 4096, kv, place, memory };
                let (choice, needed) = plan.model_that_fits().unwrap();
                assert_eq!(choice.to_string(), want, "{by:?}, {place:?}");
                assert!(needed <= memory && needed as f64 > weight_bytes, "{by:?}, {place:?}: {needed}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_every_number_and_what_would() {
        let models = [footprint("qwen2.5-7b-instruct", "q4_k_m")];
        let embedder = ("all-minilm-l6-v2:f32".to_owned(), 90_868_376);
        let plan = |memory| Plan {
            models: &models,
            embedder: Some(&embedder),
            kv_tokens: 32_768,
            kv: KvPrecision::F16,
            place: Place::Shared,
            memory,
        };
        plan(12 * GIB).check().unwrap();
        let error = plan(6 * GIB).check().unwrap_err();
        let said = format!("{error:#}");
        for part in [
            "weights of qwen2.5-7b-instruct:q4_k_m 4.36 GiB",
            "keys and values of 32768 tokens in f16 1.75 GiB",
            "weights of all-minilm-l6-v2:f32 86.66 MiB",
            "workspace of a step",
            "6.00 GiB free",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let tokens = plan(6 * GIB).kv_tokens_that_fit().unwrap();
        assert!(Plan { kv_tokens: tokens, ..plan(6 * GIB) }.check().is_ok());
        assert!(Plan { kv_tokens: tokens + PAGE_TOKENS, ..plan(6 * GIB) }.check().is_err());
        let in_8_bits = |memory| Plan { kv: KvPrecision::Q8_0, ..plan(memory) };
        let kept = ("keys and values of 32768 tokens in q8_0".to_owned(), (7 * GIB / 4) / 64 * 34);
        assert_eq!(in_8_bits(6 * GIB).parts()[1], kept);
        let between = u64::midpoint(plan(0).needed(), in_8_bits(0).needed());
        let hint = crate::failure::hint_of(&plan(between).check().unwrap_err()).unwrap();
        assert!(hint.contains("in 8 bits: --kv q8_0") && in_8_bits(between).check().is_ok(), "{hint}");
        let fitting = |memory| plan(memory).with_fitting_kv().kv;
        assert_eq!([12 * GIB, between, 2 * GIB].map(fitting), [KvPrecision::F16, KvPrecision::Q8_0, KvPrecision::F16]);
        let on_gpu = Plan { place: Place::Gpu, memory: between, ..plan(0) };
        assert_eq!(on_gpu.with_fitting_kv().kv, KvPrecision::F16, "GPUs do not keep them so");
        assert_eq!(plan(2 * GIB).kv_tokens_that_fit(), None);
        assert_eq!(plan(2 * GIB).model_that_fits().unwrap().0.to_string(), "qwen2.5-1.5b-instruct:q4_k_m");
        assert!(plan(GIB / 8).model_that_fits().is_none());
    }
}
