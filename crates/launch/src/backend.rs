//! The backend that answers calls and embeds texts: this machine's engine, or a remote endpoint for the calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use calls::Caller;
use engine::{Config, Engine, Models};
use remote::{Address, Remote, Setup};

use crate::failure::refusal;
use crate::flags::{EndpointFlags, GlobalFlags, ModelFlags};
use crate::preloaded::PreloadedModels;
use crate::{home, loader, typed_model};

/// The environment variable with the endpoint's key: other users of the machine can see command lines.
const KEY: &str = "MEMLOCAL_ENGINE_KEY";

/// How long calls to an overloaded endpoint are retried.
const RETRY_LIMIT: Duration = Duration::from_mins(10);

/// An engine, and the endpoint that answers calls instead of it, if there is one.
pub struct Backend {
    /// Has language models only where there is no endpoint.
    pub engine: Engine,
    remote: Option<Arc<Remote>>,
}

impl Backend {
    /// Loads models, or connects to the endpoint and loads the embedding model alone.
    pub fn start(
        models: &ModelFlags,
        endpoint: &EndpointFlags,
        with_embedder: bool,
        global: &GlobalFlags,
    ) -> Result<Backend> {
        let Some(remote) = connect(endpoint, global)? else {
            return Ok(Backend { engine: loader::start(models, with_embedder, global)?, remote: None });
        };
        let embedder = Some(loader::load_embedder(&models.embedder, models.quantise_embedder, global)?);
        let models = Models { language: Vec::new(), agents: HashMap::new(), embedder };
        Ok(Backend { engine: Engine::start(models, Config::default())?, remote: Some(Arc::new(remote)) })
    }

    /// The caller that answers calls.
    pub fn caller(&self) -> &dyn Caller {
        self.remote.as_deref().map_or(&self.engine as &dyn Caller, |remote| remote)
    }

    /// The language models of this machine's engine, which are unloaded and loaded again; none with an endpoint.
    ///
    /// # Errors
    /// If their files cannot be read.
    pub fn preloaded(&self, models: &ModelFlags, global: &GlobalFlags) -> Result<Option<PreloadedModels>> {
        let is_local = self.remote.is_none();
        is_local.then(|| PreloadedModels::of(&self.engine, models, global)).transpose()
    }

    /// The same caller, shared.
    pub fn shared_caller(&self) -> Arc<dyn Caller> {
        match &self.remote {
            Some(remote) => Arc::clone(remote) as Arc<dyn Caller>,
            None => Arc::new(self.engine.clone()),
        }
    }
}

/// Connects to the endpoint that is named, if any.
///
/// # Errors
/// Offline, unless it is on this machine's loopback: that opens a socket, but nothing leaves the machine. If only its model or
/// its context is given.
fn connect(endpoint: &EndpointFlags, global: &GlobalFlags) -> Result<Option<Remote>> {
    let Some(address) = &endpoint.engine else {
        if endpoint.engine_model.is_none() && endpoint.engine_context.is_none() {
            return Ok(None);
        }
        return Err(refusal("--engine-model and --engine-context are of --engine", "add --engine URL"));
    };
    let address: Address = address.parse()?;
    if home::fetching(global)?.offline && !address.is_loopback() {
        return Err(refusal(
            format!("offline, and {address} is not on this machine"),
            "offline only endpoints on this machine's loopback may be asked, such as http://127.0.0.1:8000/v1",
        ));
    }
    let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
    let (model, context_tokens) = (endpoint.engine_model.clone(), endpoint.engine_context);
    Ok(Some(Remote::connect(Setup { address, model, context_tokens, key, patience: RETRY_LIMIT })?))
}

/// The error where `--keep-prefixes` and `--engine` are given together.
pub fn prefixes_need_local_engine() -> anyhow::Error {
    let hint = "omit --keep-prefixes; a remote endpoint manages its own cache";
    refusal("the KV cache of a remote endpoint cannot be saved", hint)
}

/// The name of a model in results; an endpoint's model has the endpoint's address in it.
pub fn model_name(typed: &str, endpoint: &EndpointFlags) -> String {
    match (&endpoint.engine, &endpoint.engine_model) {
        (Some(address), Some(model)) => store::without_secrets(&format!("{model} at {address}")),
        (Some(address), None) => store::without_secrets(address),
        (None, _) => typed_model::name(typed),
    }
}
