//! The model that a request names: the agent that it serves, and the adapter.

use std::sync::Arc;

use calls::{AdapterChoice, Agent, Call, Embedder, ModelInfo, Prompt};

use crate::error::{Result, ServerError};

/// Selects a model without an adapter, as `MODEL:none`.
pub(crate) const NO_ADAPTER: &str = "none";

/// Ollama's tag of a model without another.
pub(crate) const LATEST: &str = ":latest";

/// The language model that a request names.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub agent: Agent,
    pub adapter: AdapterChoice,
    /// How responses name it.
    pub name: String,
}

impl Served {
    /// A call to it.
    pub fn call(&self, step: &'static str, prompt: Prompt, max_output_tokens: usize) -> Call {
        Call { adapter: self.adapter.clone(), ..Call::new(self.agent, step, prompt, max_output_tokens) }
    }
}

/// All agents, the one that answers first.
pub(crate) fn agents() -> impl Iterator<Item = Agent> {
    [Agent::Responder].into_iter().chain(Agent::ALL)
}

/// The language model of this name, and the first agent that it serves. The variant (`name:variant`) may be omitted; an adapter
/// follows the name (`name:adapter`), and without one the model runs as it is configured. Ollama's clients add `:latest` to a
/// name.
///
/// # Errors
/// [`ServerError::UnknownModel`].
pub(crate) fn served(models: &dyn ModelInfo, model: &str) -> Result<Served> {
    let found = find(models, model).or_else(|| find(models, model.strip_suffix(LATEST)?));
    found.ok_or_else(|| ServerError::UnknownModel(model.to_owned()))
}

fn find(models: &dyn ModelInfo, model: &str) -> Option<Served> {
    let configured = |agent: &Agent| {
        let name = models.model(*agent);
        name == model || matches_name(models.base_model(*agent), model)
    };
    if let Some(agent) = agents().find(configured) {
        return Some(Served { agent, adapter: AdapterChoice::OfAgent, name: models.model(agent).to_owned() });
    }
    let (base, adapter) = model.rsplit_once(':')?;
    let has = |agent: &Agent| {
        let adapters = models.adapters(*agent);
        matches_name(models.base_model(*agent), base)
            && !adapters.is_empty()
            && (adapter == NO_ADAPTER || adapters.iter().any(|known| known == adapter))
    };
    let agent = agents().find(has)?;
    let base = models.base_model(agent);
    Some(match adapter {
        NO_ADAPTER => Served { agent, adapter: AdapterChoice::Base, name: base.to_owned() },
        adapter => {
            Served { agent, adapter: AdapterChoice::Named(Arc::from(adapter)), name: format!("{base}:{adapter}") }
        }
    })
}

/// Checks the name of the embedder.
///
/// # Errors
/// [`ServerError::UnknownModel`].
pub(crate) fn check_embedder(embedder: &dyn Embedder, model: &str) -> Result<()> {
    let matches = |model: &str| matches_name(embedder.name(), model);
    if embedder.dims() > 0 && (matches(model) || model.strip_suffix(LATEST).is_some_and(matches)) {
        return Ok(());
    }
    Err(ServerError::UnknownModel(model.to_owned()))
}

/// Whether a request for a model means the one of this name: the variant may be omitted, and `:latest` added.
pub(crate) fn matches_name(name: &str, requested: &str) -> bool {
    let is = |requested: &str| name == requested || name.split_once(':').is_some_and(|(name, _)| name == requested);
    is(requested) || requested.strip_suffix(LATEST).is_some_and(is)
}
