//! One language model on this disk, to be loaded beside those that run: what it takes, and an engine for it.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use engine::{Config, Engine, Models};
use models::{Footprint, Inspection, KvPrecision, LoadOptions, Quantisation};

use crate::device::{Computing, computed_by};
use crate::failure::refusal;
use crate::fetching::found;
use crate::flags::{GlobalFlags, Gpu};
use crate::loader::{default_kv_tokens, precision_of};
use crate::memory_budget::{self, Loading};
use crate::plan::{MIN_KV_TOKENS, ModelBytes, Place, has_keys_in_8_bits};
use crate::split::SPLIT_KV_TOKENS;

/// A language model on this disk.
#[derive(Debug)]
pub struct OneModel<'a> {
    typed: &'a str,
    path: PathBuf,
    options: LoadOptions,
    global: &'a GlobalFlags,
}

impl<'a> OneModel<'a> {
    /// Finds the model of a name, a name on the hub, or a path; dense weights are made smaller if a format is named.
    ///
    /// # Errors
    /// If it is not on this disk: nothing is fetched.
    pub fn find(typed: &'a str, quantise: Option<Quantisation>, global: &'a GlobalFlags) -> Result<OneModel<'a>> {
        let path = found(typed, global)?.map_err(|choice| {
            refusal(format!("{choice} is not on this disk"), format!("memlocal models pull {choice}"))
        })?;
        Ok(OneModel { typed, path, options: LoadOptions { precision: precision_of(quantise), yarn: None }, global })
    }

    /// What its files say.
    pub fn inspect(&self) -> Result<Inspection> {
        Inspection::of(&self.path, self.options).with_context(|| format!("cannot read {}", self.typed))
    }

    /// Bytes that it takes with its KV cache and the workspace of a step. On an NVIDIA GPU the cache is the smallest of use.
    pub fn memory(&self, footprint: Footprint) -> ModelBytes {
        let place = if self.global.gpu() == Gpu::None { Place::Shared } else { Place::Gpu };
        let footprint = footprint.computed_by(computed_by(self.global));
        let footprint = if place == Place::Gpu { footprint.on_gpu() } else { footprint };
        let kv_tokens = match (self.global.kv_tokens, place) {
            (Some(tokens), _) => tokens,
            (None, Place::Shared) => default_kv_tokens([&footprint]),
            (None, Place::Gpu) => MIN_KV_TOKENS as usize,
        };
        let split_kv_tokens = self.global.kv_tokens.unwrap_or(SPLIT_KV_TOKENS);
        let model = (self.typed.to_owned(), footprint);
        let of = |kv| ModelBytes::of(&model, kv_tokens, split_kv_tokens, kv, place);
        let bytes = of(self.global.kv());
        if place == Place::Shared && self.global.kv_is_auto() && has_keys_in_8_bits(&footprint) {
            return ModelBytes { least: of(KvPrecision::Q8_0).whole, ..bytes };
        }
        bytes
    }

    /// Loads it into an engine of its own, where it is called `name`; on the CPU it is made smaller ([`ModelBytes::least`]) if
    /// it does not fit into `memory_bytes` whole. Dropping the engine gives all memory back.
    ///
    /// # Errors
    /// If it does not fit into the memory that is free now, or cannot be loaded.
    pub fn load(&self, name: &str, memory_bytes: u64) -> Result<Engine> {
        let loading = || format!("cannot load {}", self.typed);
        let computing = Computing::of(self.global)?;
        let footprint = Footprint::of(&self.path, self.options).with_context(loading)?;
        let models = [(name.to_owned(), footprint.computed_by(computed_by(self.global)))];
        // Bytes on a GPU say nothing of the CPU that computes where `--gpu auto` finds none.
        let memory = if self.global.gpu() == Gpu::None { Some(memory_bytes) } else { memory_budget::free_bytes() };
        let plan = Loading::of(&models, None, self.global).with_fitting_kv(memory, &computing, self.global);
        let placements = plan.placements(&computing)?;
        let placement = placements.as_ref().map(|placements| &placements[0]);
        let model = computing.load(&self.path, self.options, placement).with_context(loading)?;
        let config = memory_budget::config(&computing, &plan, placements.as_deref())?;
        let max_draft_tokens = self.global.draft_tokens.unwrap_or(config.max_draft_tokens);
        let config = Config { max_draft_tokens, kv_precision: plan.kv, ..config };
        let models = Models { language: vec![(name.to_owned(), model)], agents: HashMap::new(), embedder: None };
        Ok(Engine::start(models, config)?)
    }
}
