//! Who answers calls and who makes vectors: the engine of this machine, or for the calls an endpoint elsewhere.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use calls::Caller;
use engine::{Config, Engine, Models};
use remote::{Address, Remote, Setup};

use crate::args::{EngineChoice, Machine, ModelChoice};
use crate::failure::refusal;
use crate::{home, machine};

/// Where the key of an endpoint is looked for: what is typed can be seen by others on the machine.
const KEY: &str = "MEMLOCAL_ENGINE_KEY";

/// How long an overloaded endpoint is asked again.
const PATIENCE: Duration = Duration::from_mins(10);

/// Both of them.
pub struct Answering {
    /// Has language models only where there is no endpoint.
    pub engine: Engine,
    remote: Option<Arc<Remote>>,
}

impl Answering {
    /// Loads models, or finds the endpoint and loads the embedding model alone.
    pub fn start(
        models: &ModelChoice,
        engine: &EngineChoice,
        with_embedder: bool,
        machine: &Machine,
    ) -> Result<Answering> {
        let Some(remote) = connect(engine, machine)? else {
            return Ok(Answering { engine: machine::start(models, with_embedder, machine)?, remote: None });
        };
        let embedder = Some(machine::load_embedder(&models.embedder, models.quantise_embedder, machine)?);
        let models = Models { language: Vec::new(), roles: HashMap::new(), embedder };
        Ok(Answering { engine: Engine::start(models, Config::default())?, remote: Some(Arc::new(remote)) })
    }

    /// Whoever answers calls.
    pub fn caller(&self) -> &dyn Caller {
        self.remote.as_deref().map_or(&self.engine as &dyn Caller, |remote| remote)
    }

    /// The same, for keeps.
    pub fn shared_caller(&self) -> Arc<dyn Caller> {
        match &self.remote {
            Some(remote) => Arc::clone(remote) as Arc<dyn Caller>,
            None => Arc::new(self.engine.clone()),
        }
    }
}

/// The endpoint that was named, if any was.
///
/// # Errors
/// Offline, unless it is on this machine's loopback: that opens a socket, but nothing leaves the machine.
fn connect(engine: &EngineChoice, machine: &Machine) -> Result<Option<Remote>> {
    let Some(address) = &engine.engine else { return Ok(None) };
    let address: Address = address.parse()?;
    if home::fetching(machine)?.offline && !address.is_loopback() {
        return Err(refusal(
            format!("offline, and {address} is not on this machine"),
            "offline only endpoints on this machine's loopback may be asked, such as http://127.0.0.1:8000/v1",
        ));
    }
    let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
    let (model, context_tokens) = (engine.engine_model.clone(), engine.engine_context);
    Ok(Some(Remote::connect(Setup { address, model, context_tokens, key, patience: PATIENCE })?))
}

/// Why `--keep-prefixes` and `--engine` do not go together.
pub fn kept_elsewhere() -> anyhow::Error {
    let hint = "leave --keep-prefixes out; an endpoint keeps what it likes";
    refusal("keys and values of an endpoint elsewhere cannot be kept here", hint)
}

/// What the model of a role is called where it is not asked itself: an endpoint's by address and name.
pub fn model_name(typed: &str, engine: &EngineChoice) -> String {
    match (&engine.engine, &engine.engine_model) {
        (Some(address), Some(model)) => format!("{model} at {address}"),
        (Some(address), None) => address.clone(),
        (None, _) => machine::name(typed),
    }
}
