//! State shared by all requests.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calls::{AdapterChoice, Agent, Call, Caller, Embedder, Embedding, Heads, ModelState, Priority, Reply, TenantId};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::admission::Admission;
use crate::blocking::{run_blocking, start_blocking};
use crate::config::{Config, LoadModels};
use crate::error::{Result, ServerError};
use crate::history::History;
use crate::keys::KeysFile;
use crate::loading::{KeepAlive, Presence, Resident, Residents, Use};
use crate::metered::Metered;
use crate::metrics::Metrics;
use crate::pulling::{Given, Meant, Preset, Pulling, find_meant};
use crate::rate::Rate;
use crate::served::{self, Served, matches_name};
use crate::status;
use crate::tenant::Tenants;

pub(crate) use crate::fresh::{fresh_id, random, since_1970};

tokio::task_local! {
    /// The priority of all calls of a task that answers a batch, instead of their own.
    pub(crate) static PRIORITY: Priority;
}

/// The priority of the calls of this task that have no other.
pub(crate) fn priority() -> Priority {
    PRIORITY.try_with(|priority| *priority).unwrap_or(Priority::Interactive)
}

/// Whether this task answers a request of a batch.
pub(crate) fn is_of_batch() -> bool {
    PRIORITY.try_with(|_| ()).is_ok()
}

/// A handle to the shared state.
pub(crate) type App = Arc<Shared>;

/// State shared by all requests, with the caller that answers this one: that of the models that the server was started with,
/// or of a model that was loaded for it ([`Shared::serving`]).
pub(crate) struct Shared {
    pub caller: Arc<dyn Caller>,
    /// The model that the request names, unless it is one that the server was started with, by its own name.
    pub named: Option<Served>,
    /// What the name of that model brings along.
    pub preset: Preset,
    core: Arc<Core>,
}

/// What all requests share.
pub(crate) struct Core {
    /// The models that the server was started with; one that was unloaded is loaded again for its next call.
    pub fixed: Arc<dyn Caller>,
    pub residents: Arc<Residents>,
    pub embedder: Arc<dyn Embedder>,
    pub config: Config,
    pub metrics: Arc<Metrics>,
    pub admission: Admission,
    /// Bounds concurrent file uploads.
    pub uploads: Admission,
    pub rate: Option<Rate>,
    pub tenants: Tenants,
    pub pulling: Pulling,
    /// Start time in seconds since 1970.
    pub started_seconds: u64,
    pub stopping: AtomicBool,
    pub history: History,
}

impl Deref for Shared {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Shared {
    pub fn new(caller: Arc<dyn Caller>, embedder: Arc<dyn Embedder>, config: Config) -> App {
        let metrics = Arc::new(Metrics::default());
        let residents = Residents::new(Arc::clone(&caller), &config);
        let (preloaded, log_prompts) = (Some(Arc::clone(&residents)), config.log_prompts);
        let metered = Metered { inner: caller, metrics: Arc::clone(&metrics), log_prompts, preloaded, _in_use: None };
        let caller: Arc<dyn Caller> = Arc::new(metered);
        let embedder = Metered {
            inner: embedder,
            metrics: Arc::clone(&metrics),
            log_prompts: false,
            preloaded: None,
            _in_use: None,
        };
        let core = Arc::new(Core {
            fixed: Arc::clone(&caller),
            residents,
            embedder: Arc::new(embedder),
            admission: Admission::new(config.max_requests),
            uploads: Admission::new(config.max_uploads),
            rate: config.rate.map(Rate::new),
            tenants: Tenants::new(&config),
            pulling: Pulling::default(),
            metrics,
            config,
            started_seconds: since_1970().as_secs(),
            stopping: AtomicBool::new(false),
            history: History::default(),
        });
        Arc::new(Shared { caller, named: None, preset: Preset::default(), core })
    }

    /// The app that answers for the model of this name: one whose caller is the model, which is loaded if need be, and stays
    /// loaded while that app lives. This app for an unknown one.
    ///
    /// # Errors
    /// [`ServerError::ModelsFixed`] if the model is here and may not be loaded, and those of [`Residents::load`].
    pub async fn serving(self: &Arc<Self>, model: &str) -> Result<App> {
        self.serving_for(model, None).await
    }

    /// As [`Shared::serving`], with the time that the model stays loaded after this request.
    pub async fn serving_for(self: &Arc<Self>, model: &str, keep_alive: Option<KeepAlive>) -> Result<App> {
        if self.named.is_some() {
            return Ok(Arc::clone(self));
        }
        if let Ok(served) = self.served(model) {
            return self.preloaded(&served, None, Preset::default(), keep_alive).await;
        }
        // What is loaded is found without listing the disk.
        let given = self.given(model).await?;
        if let Some(Given { name, of, preset }) = &given
            && let Ok(served) = self.served(of)
        {
            let named = Some(Served { name: name.clone(), ..served.clone() });
            return self.preloaded(&served, named, preset.clone(), keep_alive).await;
        }
        let is_meant = |known: &str| match &given {
            // A file is loaded by the name that was given to it.
            Some(Given { name, of, .. }) => known == of || known == name,
            None => matches_name(known, model),
        };
        let (name, preset, (Resident { caller, .. }, in_use)) =
            if let Some(found) = self.residents.find(is_meant, keep_alive) {
                let of_loaded = || self.given(&found.0.name);
                let given = if given.is_some() { given } else { of_loaded().await? };
                let found_name = || (found.0.name.clone(), Preset::default());
                let (name, preset) = given.map_or_else(found_name, |Given { name, preset, .. }| (name, preset));
                (name, preset, found)
            } else {
                let Some(Meant { name, model, preset }) = self.meant(model).await? else { return Ok(Arc::clone(self)) };
                // Another name of a model that the server was started with.
                if let Ok(served) = self.served(&model.name) {
                    let named = Some(Served { name, ..served.clone() });
                    return self.preloaded(&served, named, preset, keep_alive).await;
                }
                let Some(shelf) = self.config.shelf.clone().filter(|_| self.loads_models()) else {
                    return Err(ServerError::ModelsFixed(name));
                };
                let loading = self.residents.load(shelf, model, keep_alive);
                (name, preset, self.with_deadline(loading).await?)
            };
        let caller = self.metered(caller, None, Some(in_use));
        let named = Some(Served { agent: Agent::Responder, adapter: AdapterChoice::OfAgent, name });
        Ok(Arc::new(Shared { caller, named, preset, core: Arc::clone(&self.core) }))
    }

    /// A name that was given to a model.
    async fn given(&self, model: &str) -> Result<Option<Given>> {
        let Some(shelf) = self.config.shelf.clone() else { return Ok(None) };
        let model = model.to_owned();
        run_blocking(move || Ok(shelf.given(&model).or_else(|| shelf.given(model.strip_suffix(served::LATEST)?)))).await
    }

    fn metered(
        &self,
        inner: Arc<dyn Caller>,
        preloaded: Option<Arc<Residents>>,
        in_use: Option<Use>,
    ) -> Arc<dyn Caller> {
        let (metrics, log_prompts) = (Arc::clone(&self.metrics), self.config.log_prompts);
        Arc::new(Metered { inner, metrics, log_prompts, preloaded, _in_use: in_use })
    }

    /// The app that answers for a model that the server was started with, which stays loaded while that app lives.
    async fn preloaded(
        &self,
        served: &Served,
        named: Option<Served>,
        preset: Preset,
        keep_alive: Option<KeepAlive>,
    ) -> Result<App> {
        let keep_alive = keep_alive.filter(|_| self.loads_models());
        let name = self.fixed.models().base_model(served.agent);
        let in_use = self.with_deadline(self.residents.enter(name, keep_alive)).await?;
        let caller = self.metered(self.residents.fixed(), Some(Arc::clone(&self.residents)), in_use);
        Ok(Arc::new(Shared { caller, named, preset, core: Arc::clone(&self.core) }))
    }

    /// The language model of this name, as [`served::served`], unless this app answers for one that was loaded.
    ///
    /// # Errors
    /// [`ServerError::UnknownModel`], and [`ServerError::OtherWork`] for the embedder.
    pub fn served(&self, model: &str) -> Result<Served> {
        let found = self.named.clone().map_or_else(|| served::served(self.caller.models(), model), Ok);
        found.map_err(|unknown| match served::check_embedder(&*self.embedder, model) {
            Ok(()) => ServerError::OtherWork(format!("the model `{model}` embeds texts and writes none")),
            Err(_) => unknown,
        })
    }

    /// Checks the name of the embedder.
    ///
    /// # Errors
    /// [`ServerError::UnknownModel`], and [`ServerError::OtherWork`] for a language model.
    pub fn check_embedder(&self, model: &str) -> Result<()> {
        served::check_embedder(&*self.embedder, model).map_err(|unknown| {
            let embedder = self.embedder.name();
            match served::served(self.caller.models(), model) {
                Ok(_) if self.embedder.dims() > 0 => ServerError::OtherWork(format!(
                    "the model `{model}` writes texts and embeds none; `{embedder}` does"
                )),
                _ => unknown,
            }
        })
    }

    /// The language model on this disk that a request means.
    pub async fn meant(&self, model: &str) -> Result<Option<Meant>> {
        let Some(shelf) = self.config.shelf.clone() else { return Ok(None) };
        let model = model.to_owned();
        run_blocking(move || Ok(find_meant(&*shelf, &model))).await
    }

    /// Whether the server was started with the model of this name.
    pub fn is_fixed(&self, name: &str) -> bool {
        self.served(name).is_ok() || self.check_embedder(name).is_ok()
    }

    /// Whether a request for a model of this name would have one loaded. Blocks: it lists the disk.
    pub fn has_on_disk(&self, name: &str) -> bool {
        let meant = self.config.shelf.as_deref().and_then(|shelf| find_meant(shelf, name));
        meant.is_some_and(|meant| self.loads_models() || self.served(&meant.model.name).is_ok())
    }

    /// Whether a request for this name means a model. Blocks.
    pub fn has_model(&self, name: &str) -> bool {
        self.is_fixed(name) || self.has_on_disk(name)
    }

    /// Whether models may be loaded and unloaded while the server runs.
    pub fn loads_models(&self) -> bool {
        let needs_keys = || self.config.keys.as_ref().and_then(KeysFile::keys).is_some();
        self.config.shelf.is_some()
            && match self.config.load_models {
                LoadModels::Always => true,
                LoadModels::Never => false,
                LoadModels::Alone => self.config.loopback_only && !needs_keys(),
            }
    }

    /// The name of a model that the server was started with, if a request means one, without an adapter.
    pub fn preloaded_name(&self, model: &str) -> Option<String> {
        let served = served::served(self.fixed.models(), model).ok()?;
        Some(self.fixed.models().base_model(served.agent).to_owned())
    }

    /// Whether the model of this name is in memory; none if the server was not started with it.
    pub fn presence(&self, model: &str) -> Option<Presence> {
        self.preloaded_name(model).map(|name| self.residents.presence(&name))
    }

    /// Unloads the model of this name as soon as no request uses it. False if it is not loaded, or was loaded at the start
    /// and never leaves.
    pub async fn unload(&self, model: &str) -> Result<bool> {
        match self.preloaded_name(model) {
            Some(_) if !self.loads_models() => Ok(false),
            Some(preloaded) => self.residents.unload_preloaded(&preloaded).await,
            None => self.residents.unload(|known| matches_name(known, model)).await,
        }
    }

    /// States of the engines of all models.
    pub fn states(&self) -> Vec<ModelState> {
        status::states(&*self.fixed).into_iter().chain(self.residents.states()).collect()
    }

    /// Runs a tenant's call.
    pub async fn call(&self, tenant: TenantId, call: Call) -> Result<Reply> {
        self.call_in_order(tenant, || call, &Mutex::new(())).await
    }

    /// Runs one of several calls; they are made and submitted one after the other, in the order of these requests. So a
    /// prompt that is refused has one copy, whatever the number of calls.
    pub async fn call_in_order(
        &self,
        tenant: TenantId,
        call: impl FnOnce() -> Call + Send,
        order: &Mutex<()>,
    ) -> Result<Reply> {
        let caller = Arc::clone(&self.caller);
        let submitted = {
            let _order = order.lock().await;
            let call = call();
            let priority = PRIORITY.try_with(|priority| *priority).unwrap_or(call.priority);
            let call = Call { tenant, priority, ..call };
            start_blocking(async move { caller.call(call).await }).await?
        };
        Ok(submitted.await?)
    }

    /// Number of tokens of a call's prompt.
    pub async fn prompt_tokens(&self, call: &Call) -> Result<usize> {
        let (caller, call) = (Arc::clone(&self.caller), call.clone());
        run_blocking(move || Ok(caller.tokens().prompt_tokens(&call))).await
    }

    /// The requested representations of a tenant's texts.
    pub async fn encode(&self, tenant: TenantId, texts: Vec<String>, heads: Heads) -> Result<Vec<Embedding>> {
        let embedder = Arc::clone(&self.embedder);
        Ok(start_blocking(async move { embedder.encode_for(tenant, texts, heads).await }).await?.await?)
    }

    /// Texts with the numbers of tokens that the embedder reads, special ones included.
    pub async fn with_token_counts(&self, texts: Vec<String>) -> Result<Vec<(String, usize)>> {
        let embedder = Arc::clone(&self.embedder);
        let count = move |text: String| {
            let tokens = embedder.token_spans(&text).len() + embedder.special_tokens();
            (text, tokens)
        };
        run_blocking(move || Ok(texts.into_iter().map(count).collect())).await
    }

    /// Runs work until the deadline.
    ///
    /// # Errors
    /// [`ServerError::DeadlineExceeded`] after the deadline, and the errors of the work.
    pub async fn with_deadline<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let deadline = self.config.deadline;
        timeout(deadline, work).await.map_err(|_| ServerError::DeadlineExceeded(deadline))?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use calls::{Prompt, Scripted, ScriptedEmbedder};
    use futures_util::poll;
    use tempfile::TempDir;

    use super::*;

    impl Shared {
        /// An app whose models have no answers, with its data in a new folder.
        pub fn scripted() -> (App, TempDir) {
            let data = tempfile::tempdir().expect("the system has a folder for temporary files");
            (Shared::new(Arc::new(Scripted::new(100)), Arc::new(ScriptedEmbedder), Config::new(data.path())), data)
        }
    }

    #[tokio::test]
    async fn a_call_is_made_when_it_is_its_turn() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let caller = Arc::new(Scripted::new(100).answer("chat", "Yes."));
        let app = Shared::new(caller, Arc::new(ScriptedEmbedder), Config::new(folder.path()));
        let (order, made) = (Mutex::new(()), AtomicBool::new(false));
        let before = order.lock().await;
        let call = || {
            made.store(true, Ordering::SeqCst);
            Call::new(Agent::Responder, "chat", Prompt::new(), 5)
        };
        let mut waiting = Box::pin(app.call_in_order(TenantId::LOCAL, call, &order));
        assert!(poll!(waiting.as_mut()).is_pending() && !made.load(Ordering::SeqCst));
        drop(before);
        assert_eq!(waiting.await.expect("it is answered").text, "Yes.");
        assert!(made.load(Ordering::SeqCst));
    }
}
