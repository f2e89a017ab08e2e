//! Language models that are loaded on demand beside those that the server was started with, and unloaded again. Those of the start
//! are too.
//!
//! # Invariants
//! * One model is loaded at a time, and each by one request: others that name it wait for that load.
//! * A model is unloaded only while no request uses it. A use lasts as long as anything that can call the model does.
//! * The memory of an unloaded model has been given back before the next one is loaded.
//! * Nothing is unloaded for a model that would not fit even then.

pub(crate) mod keep_alive;
mod preloaded;
mod uses;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use calls::{Caller, ModelState};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant as Moment, sleep_until};

pub use keep_alive::KeepAlive;
use preloaded::PreloadedModels;
pub(crate) use uses::Use;
use uses::Uses;

use crate::blocking::run_blocking;
use crate::config::Config;
use crate::error::{Result, ServerError};
use crate::pulling::{ModelMemory, Shelf, ShelfModel};
use crate::status;

/// A loaded model.
#[derive(Clone)]
pub(crate) struct Resident {
    pub name: String,
    pub caller: Arc<dyn Caller>,
    /// What the planner reckons with: bytes on its device.
    pub memory_bytes: u64,
    uses: Arc<Uses>,
}

/// How a loaded model is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub in_use: usize,
    /// Time until it is unloaded; `None` if it stays.
    pub expires_in: Option<Duration>,
}

/// Whether a model that the server was started with is in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Presence {
    /// It never leaves.
    Always,
    Now(Status),
    Left,
}

impl Presence {
    /// How the model is used, if it can leave and has not.
    pub fn status(self) -> Option<Status> {
        match self {
            Presence::Now(status) => Some(status),
            Presence::Always | Presence::Left => None,
        }
    }

    pub fn has_left(self) -> bool {
        matches!(self, Presence::Left)
    }
}

impl Resident {
    pub fn status(&self) -> Status {
        self.uses.status_now()
    }
}

/// The models that were loaded on demand, and those of the start.
pub(crate) struct Residents {
    shelf: Option<Arc<dyn Shelf>>,
    /// The caller of the models that the server was started with.
    fixed: Arc<dyn Caller>,
    preloaded: Arc<PreloadedModels>,
    loaded: Mutex<Vec<Resident>>,
    /// Held while a model is loaded; first come, first served.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Bounds the requests that wait for a load.
    waiting: Semaphore,
    max_waiting: usize,
    keep_alive: KeepAlive,
    /// Held while models are unloaded, and while free memory is measured.
    leaving: tokio::sync::Mutex<()>,
    /// Counts the ends of uses and other changes.
    changes: watch::Sender<u64>,
}

/// Memory of the models that are loaded, for the planner.
pub(crate) struct Room {
    /// Bytes that can be used now, less KV pages that are promised but not used yet; `None` if the system does not say.
    pub free: Option<u64>,
    /// Bytes of the models that could be unloaded now.
    pub idle: u64,
}

impl Residents {
    pub fn new(fixed: Arc<dyn Caller>, config: &Config) -> Arc<Residents> {
        let (shelf, preloaded) = (config.shelf.clone(), PreloadedModels::new(config.preloaded.clone()));
        let (max_waiting, keep_alive) = (config.max_load_waits, config.keep_alive);
        let (turn, waiting) = (Arc::default(), Semaphore::new(max_waiting));
        let (loaded, changes) = (Mutex::default(), watch::Sender::new(0));
        let leaving = tokio::sync::Mutex::default();
        Arc::new(Residents {
            shelf,
            fixed,
            preloaded,
            loaded,
            turn,
            waiting,
            max_waiting,
            keep_alive,
            leaving,
            changes,
        })
    }

    /// Uses a model that the server was started with, after loading it again if it was unloaded; no use if it is never unloaded.
    ///
    /// # Errors
    /// [`ServerError::NoRoom`] if it does not fit any more, and [`ServerError::Load`] if it cannot be loaded.
    pub async fn enter(&self, name: &str, keep_alive: Option<KeepAlive>) -> Result<Option<Use>> {
        let Some(index) = self.preloaded.find(|known| known == name) else { return Ok(None) };
        let begin = || self.preloaded.begin(index, keep_alive, self.changes.clone());
        loop {
            if let Some(begun) = begin() {
                return Ok(Some(begun));
            }
            let turn = Arc::clone(&self.turn).lock_owned().await;
            if let Some(begun) = begin() {
                return Ok(Some(begun));
            }
            let (name, memory) = self.preloaded.described(index);
            let memory_bytes = self.make_room(&name, memory).await?;
            let preloaded = Arc::clone(&self.preloaded);
            // The load continues if the client disconnects.
            let load = move || {
                let _turn = turn;
                preloaded.load(index, memory_bytes)
            };
            run_blocking(load).await?;
        }
    }

    /// Whether a model of the start is in memory.
    pub fn presence(&self, name: &str) -> Presence {
        self.preloaded.presence(name)
    }

    /// The caller of the models that the server was started with.
    pub fn fixed(&self) -> Arc<dyn Caller> {
        Arc::clone(&self.fixed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Resident>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loaded models, in the order in which they were loaded.
    pub fn all(&self) -> Vec<Resident> {
        self.lock().clone()
    }

    /// States of their engines.
    pub fn states(&self) -> Vec<ModelState> {
        self.lock().iter().flat_map(|resident| status::states(&*resident.caller)).collect()
    }

    /// Uses a model that is loaded.
    pub fn find(&self, is_meant: impl Fn(&str) -> bool, keep_alive: Option<KeepAlive>) -> Option<(Resident, Use)> {
        let loaded = self.lock();
        let resident =
            loaded.iter().find(|resident| is_meant(&resident.name) && status::is_alive(&*resident.caller))?;
        Some((resident.clone(), resident.uses.begin(keep_alive, self.changes.clone())))
    }

    /// Uses a model of the shelf, after loading it if need be and unloading idle ones to make room.
    ///
    /// # Errors
    /// [`ServerError::LoadsWaiting`] if too many requests wait, [`ServerError::NoRoom`] if it does not fit, and
    /// [`ServerError::Load`] if it cannot be loaded.
    pub async fn load(
        self: &Arc<Self>,
        shelf: Arc<dyn Shelf>,
        model: ShelfModel,
        keep_alive: Option<KeepAlive>,
    ) -> Result<(Resident, Use)> {
        let is_meant = |name: &str| name == model.name;
        if let Some(found) = self.find(is_meant, keep_alive) {
            return Ok(found);
        }
        let place = self.waiting.try_acquire();
        let _place = place.map_err(|_| ServerError::LoadsWaiting { waiting: self.max_waiting })?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if let Some(found) = self.find(is_meant, keep_alive) {
            return Ok(found);
        }
        // One whose engine has failed is replaced.
        let failed: Vec<Resident> = self.lock().extract_if(.., |resident| is_meant(&resident.name)).collect();
        run_blocking(move || {
            drop(failed);
            Ok(())
        })
        .await?;
        let memory_bytes = self.make_room(&model.name, model.memory).await?;
        let this = Arc::clone(self);
        // The load continues if the client disconnects.
        let loading = tokio::spawn(async move {
            let _turn = turn;
            let started = Instant::now();
            let name = model.name.clone();
            let load = move || {
                let failed = |(message, hint)| ServerError::Load { model: name.clone(), message, hint };
                shelf.load(&name, memory_bytes).map_err(failed)
            };
            let caller = run_blocking(load).await?;
            tracing::info!(model = model.name, seconds = started.elapsed().as_secs_f64(), "loaded a model");
            let uses = Uses::new(this.keep_alive);
            let resident = Resident { name: model.name, caller, memory_bytes, uses };
            let begun = resident.uses.begin(keep_alive, this.changes.clone());
            this.lock().push(resident.clone());
            Ok((resident, begun))
        });
        loading.await.map_err(|error| ServerError::Worker(error.to_string()))?
    }

    /// Unloads idle models, the least recently used first and those of the start last, until a model fits; waits for models
    /// in use if that is what it takes. One that would not fit whole even then, but can be divided or made smaller, gets what the
    /// idle ones leave. Returns the bytes that it takes.
    async fn make_room(&self, model: &str, memory: ModelMemory) -> Result<u64> {
        let ModelMemory { whole, least } = memory;
        let mut changes = self.changes.subscribe();
        loop {
            let leaving = self.leaving.lock().await;
            let Some(shelf) = self.shelf.clone() else { return Ok(whole) };
            let mut callers: Vec<Arc<dyn Caller>> = self.all().into_iter().map(|resident| resident.caller).collect();
            callers.push(Arc::clone(&self.fixed));
            let free = run_blocking(move || {
                Ok(shelf.free_bytes().map(|free| free.saturating_sub(callers.iter().map(promised).sum())))
            });
            // What the system does not say the load itself finds out.
            let Some(free) = free.await? else { return Ok(whole) };
            if whole <= free {
                return Ok(whole);
            }
            let on_demand: u64 = self.lock().iter().map(|resident| resident.memory_bytes).sum();
            let most = free.saturating_add(on_demand + self.preloaded.bytes(false));
            if least > most {
                return Err(ServerError::NoRoom { model: model.to_owned(), needed: least, free: most });
            }
            if let Some(idle) = self.take_oldest_idle() {
                self.give_back(idle).await?;
            } else if let Some(idle) = self.preloaded.oldest_idle() {
                self.release_preloaded(idle).await?;
            } else if whole > most && least <= free {
                return Ok(free);
            } else {
                drop(leaving);
                drop(changes.changed().await);
            }
        }
    }

    /// Removes the idle model whose last use is the longest ago.
    fn take_oldest_idle(&self) -> Option<Resident> {
        let mut loaded = self.lock();
        let idle = loaded.iter().enumerate().filter_map(|(at, resident)| Some((at, resident.uses.idle_since()?)));
        let (at, _) = idle.min_by_key(|(_, since)| *since)?;
        Some(loaded.remove(at))
    }

    /// Unloads a model as soon as no request uses it; false if it is not loaded.
    pub async fn unload(&self, is_meant: impl Fn(&str) -> bool) -> Result<bool> {
        let _leaving = self.leaving.lock().await;
        let taken = {
            let mut loaded = self.lock();
            let Some(at) = loaded.iter().position(|resident| is_meant(&resident.name)) else { return Ok(false) };
            loaded[at].uses.expire_when_idle();
            loaded[at].uses.idle_since().is_some().then(|| loaded.remove(at))
        };
        if let Some(resident) = taken {
            self.give_back(resident).await?;
        }
        Ok(true)
    }

    /// Unloads a model that the server was started with as soon as no request uses it; false if it never leaves.
    pub async fn unload_preloaded(&self, name: &str) -> Result<bool> {
        let _leaving = self.leaving.lock().await;
        let Some(index) = self.preloaded.find(|known| known == name) else { return Ok(false) };
        self.preloaded.expire_when_idle(index);
        self.release_preloaded(index).await?;
        Ok(true)
    }

    /// Unloads models whose time has come, for as long as it is polled.
    pub async fn expire(&self) -> std::convert::Infallible {
        let mut changes = self.changes.subscribe();
        loop {
            let leaving = self.leaving.lock().await;
            let now = Instant::now();
            let over = |resident: &mut Resident| resident.uses.idle_until().is_some_and(|until| until <= now);
            let expired: Vec<Resident> = self.lock().extract_if(.., over).collect();
            for resident in expired {
                note(self.give_back(resident).await);
            }
            for index in self.preloaded.expired(now) {
                note(self.release_preloaded(index).await);
            }
            drop(leaving);
            let next = self.lock().iter().filter_map(|resident| resident.uses.idle_until()).min();
            let next = next.into_iter().chain(self.preloaded.next_end()).min();
            tokio::select! {
                changed = changes.changed() => drop(changed),
                () = until(next) => {}
            }
        }
    }

    /// Drops a model that is out of the list and in no use, which ends its engine and gives its memory back.
    async fn give_back(&self, resident: Resident) -> Result<()> {
        let shelf = self.shelf.clone();
        run_blocking(move || {
            let name = resident.name.clone();
            // Lists of models that are being written hold it for a moment.
            while Arc::strong_count(&resident.caller) > 1 {
                std::thread::sleep(A_MOMENT);
            }
            drop(resident);
            if let Some(shelf) = shelf {
                shelf.release();
            }
            tracing::info!(model = name, "unloaded a model");
            Ok(())
        })
        .await
    }

    /// Unloads a model of the start, unless it is used.
    async fn release_preloaded(&self, index: usize) -> Result<()> {
        let preloaded = Arc::clone(&self.preloaded);
        run_blocking(move || preloaded.unload(index)).await
    }

    /// What the planner knows of memory now.
    pub fn room(&self, free: Option<u64>) -> Room {
        let loaded = self.lock();
        let callers = [&self.fixed].into_iter().chain(loaded.iter().map(|resident| &resident.caller));
        let promised: u64 = callers.map(promised).sum();
        let idle = loaded.iter().filter(|resident| resident.uses.idle_since().is_some());
        Room {
            free: free.map(|free| free.saturating_sub(promised)),
            idle: idle.map(|resident| resident.memory_bytes).sum::<u64>() + self.preloaded.bytes(true),
        }
    }
}

/// Bytes of KV pages that a model has not used yet; the system counts them as free until then. Those of a GPU are
/// allocated at once.
fn promised(caller: &Arc<dyn Caller>) -> u64 {
    if caller.models().details(calls::Agent::Responder).is_some_and(|details| details.on_gpu) {
        return 0;
    }
    let unused = |state: ModelState| {
        let pages = state.total_pages.saturating_sub(state.used_pages + state.cached_pages);
        pages as u64 * state.page_bytes as u64
    };
    status::states(&**caller).into_iter().map(unused).sum()
}

fn note(unloaded: Result<()>) {
    if let Err(error) = unloaded {
        tracing::error!(%error, "a model was not unloaded as it should");
    }
}

const A_MOMENT: Duration = Duration::from_millis(1);

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(Moment::from_std(moment)).await,
        None => std::future::pending().await,
    }
}
