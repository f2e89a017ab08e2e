//! The language models that an engine was started with: each can be unloaded and loaded again.

use anyhow::{Context, Result};
use engine::Engine;
use models::Footprint;

use crate::adapters::{self, Assigned};
use crate::device::{Computing, computed_by};
use crate::failure::refusal;
use crate::fetching::path_of;
use crate::flags::{GlobalFlags, ModelFlags};
use crate::loader::{default_kv_tokens, load_options};
use crate::memory_budget::{self, Loading};
use crate::plan::{ModelBytes, Place};

/// The language models of an engine, by index.
pub struct PreloadedModels {
    engine: Engine,
    flags: ModelFlags,
    global: GlobalFlags,
    /// Names with what they take.
    footprints: Vec<(String, Footprint)>,
    kv_tokens: usize,
    place: Place,
    is_cpu: bool,
}

impl std::fmt::Debug for PreloadedModels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.footprints).finish()
    }
}

impl PreloadedModels {
    /// The models of an engine that was started with these flags.
    ///
    /// # Errors
    /// If their files cannot be read.
    pub fn of(engine: &Engine, flags: &ModelFlags, global: &GlobalFlags) -> Result<PreloadedModels> {
        let assigned = Assigned::of(flags)?;
        let mut footprints = Vec::new();
        for (typed, name) in assigned.models.iter().zip(engine.language_models()) {
            let footprint = Footprint::of(&path_of(typed, global)?, load_options(flags));
            let footprint = footprint.with_context(|| format!("cannot measure {typed}"))?;
            footprints.push((name, footprint.computed_by(computed_by(global))));
        }
        let device = Computing::of(global)?.device;
        let place = if device.is_cuda() { Place::Gpu } else { Place::Shared };
        let kv_tokens = global.kv_tokens.unwrap_or(default_kv_tokens(footprints.iter().map(|(_, model)| model)));
        // A GPU's memory decides otherwise.
        let kv_tokens = if device.is_cuda() { engine.config().kv_tokens } else { kv_tokens };
        let (engine, flags, global, is_cpu) = (engine.clone(), flags.clone(), global.clone(), device.is_cpu());
        Ok(PreloadedModels { engine, flags, global, footprints, kv_tokens, place, is_cpu })
    }

    /// The names of the models, with the bytes that each takes.
    pub fn models(&self) -> Vec<(String, ModelBytes)> {
        let bytes = |(name, footprint): &(String, Footprint)| {
            let footprint = if self.is_cpu { *footprint } else { footprint.on_gpu() };
            let model = (name.clone(), footprint);
            ModelBytes::of(&model, self.kv_tokens, self.kv_tokens, self.engine.config().kv_precision, self.place)
        };
        self.footprints.iter().map(|model| (model.0.clone(), bytes(model))).collect()
    }

    /// Gives the memory of a model back.
    ///
    /// # Errors
    /// If calls of it run.
    pub fn unload(&self, model: usize) -> Result<()> {
        if !self.engine.unload(model)? {
            let name = &self.footprints[model].0;
            return Err(refusal(format!("the model {name} is in use"), "try again when its calls have ended"));
        }
        memory_budget::release(&self.global);
        Ok(())
    }

    /// Loads a model again, with its adapters.
    ///
    /// # Errors
    /// If it does not fit into the memory that is free now, or has changed since the start.
    pub fn load(&self, model: usize) -> Result<()> {
        let assigned = Assigned::of(&self.flags)?;
        let (typed, preloaded) = (assigned.models[model], &self.footprints[model]);
        let loading = || format!("cannot load {typed} again");
        let computing = Computing::of(&self.global)?;
        let (models, kv) = (std::slice::from_ref(preloaded), self.engine.config().kv_precision);
        let (requested, default_tokens) = (Some(self.kv_tokens), self.kv_tokens);
        let gpu_numbers = self.global.gpu_numbers();
        let plan = Loading { models, embedder: None, requested, default_tokens, kv, gpu_numbers };
        let placements = plan.placements(&computing)?;
        let placement = placements.as_ref().map(|placements| &placements[0]);
        let path = path_of(typed, &self.global)?;
        let language = computing.load(&path, load_options(&self.flags), placement).with_context(loading)?;
        let adapters = adapters::of_model(&self.flags, &preloaded.0, &language, &self.global)?;
        self.engine.load_again(model, language, &adapters).with_context(loading)
    }
}
