//! The models that the server was started with: which are in memory, and how they are used. They stay unless a request's
//! `keep_alive`, an unload or the planner unloads them, and the next call loads them again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::Presence;
use super::keep_alive::KeepAlive;
use super::uses::{Use, Uses};
use crate::error::{Result, ServerError};
use crate::pulling::{ModelMemory, Preloaded};

/// The models by index.
pub(super) struct PreloadedModels {
    source: Option<Arc<dyn Preloaded>>,
    models: Mutex<Vec<Model>>,
}

struct Model {
    name: String,
    memory: ModelMemory,
    /// What it takes now, if it is loaded.
    memory_bytes: u64,
    uses: Arc<Uses>,
    /// False from the moment at which it begins to leave until it is loaded again.
    is_loaded: bool,
}

impl PreloadedModels {
    /// All of them are loaded.
    pub fn new(source: Option<Arc<dyn Preloaded>>) -> Arc<PreloadedModels> {
        let model = |(name, memory): (String, ModelMemory)| {
            let uses = Uses::new(KeepAlive::Forever);
            Model { name, memory, memory_bytes: memory.whole, uses, is_loaded: true }
        };
        let models = source.iter().flat_map(|source| source.models()).map(model).collect();
        Arc::new(PreloadedModels { source, models: Mutex::new(models) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Model>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a model; none if it never leaves.
    pub fn find(&self, is_meant: impl Fn(&str) -> bool) -> Option<usize> {
        self.lock().iter().position(|model| is_meant(&model.name))
    }

    /// Uses a model; none if it is not in memory.
    pub fn begin(&self, index: usize, keep_alive: Option<KeepAlive>, changes: watch::Sender<u64>) -> Option<Use> {
        let models = self.lock();
        let model = models.get(index).filter(|model| model.is_loaded)?;
        Some(model.uses.begin(keep_alive, changes))
    }

    /// Name and memory of a model.
    pub fn described(&self, index: usize) -> (String, ModelMemory) {
        let model = &self.lock()[index];
        (model.name.clone(), model.memory)
    }

    /// Whether a model of the start is in memory.
    pub fn presence(&self, name: &str) -> Presence {
        match self.lock().iter().find(|model| model.name == name) {
            None => Presence::Always,
            Some(model) if model.is_loaded => Presence::Now(model.uses.status_now()),
            Some(_) => Presence::Left,
        }
    }

    /// The idle model whose last use is the longest ago.
    pub fn oldest_idle(&self) -> Option<usize> {
        let models = self.lock();
        let loaded = models.iter().enumerate().filter(|(_, model)| model.is_loaded);
        let idle = loaded.filter_map(|(at, model)| Some((at, model.uses.idle_since()?)));
        idle.min_by_key(|(_, since)| *since).map(|(at, _)| at)
    }

    /// Models whose time has come.
    pub fn expired(&self, now: Instant) -> Vec<usize> {
        let over = |model: &Model| model.is_loaded && model.uses.idle_until().is_some_and(|until| until <= now);
        self.lock().iter().enumerate().filter(|(_, model)| over(model)).map(|(at, _)| at).collect()
    }

    /// When the next model leaves.
    pub fn next_end(&self) -> Option<Instant> {
        self.lock().iter().filter(|model| model.is_loaded).filter_map(|model| model.uses.idle_until()).min()
    }

    /// It leaves with the end of its last use.
    pub fn expire_when_idle(&self, index: usize) {
        self.lock()[index].uses.expire_when_idle();
    }

    /// Bytes of the models that are in memory; of idle ones alone, if that is asked.
    pub fn bytes(&self, idle_only: bool) -> u64 {
        let counted = |model: &&Model| model.is_loaded && (!idle_only || model.uses.idle_since().is_some());
        self.lock().iter().filter(counted).map(|model| model.memory_bytes).sum()
    }

    /// Unloads a model unless it is used or gone. Blocks until its memory is free.
    ///
    /// # Errors
    /// [`ServerError::Conflict`] if calls of it run that have no use; it stays loaded then.
    pub fn unload(&self, index: usize) -> Result<()> {
        let Some(source) = &self.source else { return Ok(()) };
        let name = {
            let mut models = self.lock();
            let model = &mut models[index];
            if !model.is_loaded || model.uses.idle_since().is_none() {
                return Ok(());
            }
            model.is_loaded = false;
            model.name.clone()
        };
        if let Err((message, _)) = source.unload(index) {
            let model = &mut self.lock()[index];
            (model.is_loaded, model.uses) = (true, Uses::new(KeepAlive::Forever));
            return Err(ServerError::Conflict(message));
        }
        tracing::info!(model = name, "unloaded a model of the start");
        Ok(())
    }

    /// Loads a model again, to stay, where it takes these bytes. Blocks until it is loaded.
    ///
    /// # Errors
    /// [`ServerError::Load`].
    pub fn load(&self, index: usize, memory_bytes: u64) -> Result<()> {
        let Some(source) = &self.source else { return Ok(()) };
        let (name, _) = self.described(index);
        let started = Instant::now();
        source.load(index).map_err(|(message, hint)| ServerError::Load { model: name.clone(), message, hint })?;
        tracing::info!(model = name, seconds = started.elapsed().as_secs_f64(), "loaded a model of the start again");
        let model = &mut self.lock()[index];
        (model.is_loaded, model.memory_bytes) = (true, memory_bytes);
        model.uses = Uses::new(KeepAlive::Forever);
        Ok(())
    }
}
