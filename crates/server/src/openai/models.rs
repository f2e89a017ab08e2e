//! GET /v1/models: the loaded models and their adapters, and the corpora; the agent and adapter that a model name selects.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use calls::{AdapterChoice, Agent, Call, Prompt, reading};
use serde_json::{Value, json};

use crate::app::App;
use crate::blocking::run_blocking;
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::pulling::ShelfModel;
use crate::recall::{self, CorpusModel};
use crate::time::rfc3339;

/// Selects a model without an adapter, as `MODEL:none`.
const NO_ADAPTER: &str = "none";

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

/// The names of all models: language models first, each as it is configured and with each of its adapters, then the embedder.
pub(crate) fn names(app: &App) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for agent in agents() {
        add(app.caller.model(agent).to_owned());
    }
    for agent in agents() {
        let base = app.caller.base_model(agent);
        // A reader knows one prompt, which is not that of a client.
        let adapters = app.caller.adapters(agent).into_iter().filter(|adapter| adapter != reading::ADAPTER);
        adapters.for_each(|adapter| add(format!("{base}:{adapter}")));
        if app.caller.model(agent) != base {
            add(format!("{base}:{NO_ADAPTER}"));
        }
    }
    if app.embedder.dims() > 0 {
        add(app.embedder.name().to_owned());
    }
    names
}

/// The language models on this disk that a request may name besides those of [`names`]; none if the server loads none.
pub(crate) async fn loadable(app: &App) -> Result<Vec<ShelfModel>> {
    let Some(shelf) = app.config.shelf.clone().filter(|_| app.loads_models()) else { return Ok(Vec::new()) };
    let fixed = names(app);
    run_blocking(move || {
        let usable = |model: &ShelfModel| model.here && model.kind == "language" && !fixed.contains(&model.name);
        Ok(shelf.list().into_iter().filter(usable).collect())
    })
    .await
}

fn agents() -> impl Iterator<Item = Agent> {
    [Agent::Responder].into_iter().chain(Agent::ALL)
}

/// The language model of this name, and the first agent that it serves. The variant (`name:variant`) may be omitted; an adapter
/// follows the name (`name:adapter`), and without one the model runs as it is configured. Ollama's clients add `:latest` to a
/// name.
///
/// # Errors
/// [`ServerError::UnknownModel`].
pub(crate) fn served(app: &App, model: &str) -> Result<Served> {
    if let Some(named) = &app.named {
        return Ok(named.clone());
    }
    let found = find(app, model).or_else(|| find(app, model.strip_suffix(LATEST)?));
    found.ok_or_else(|| ServerError::UnknownModel(model.to_owned()))
}

fn find(app: &App, model: &str) -> Option<Served> {
    let configured = |agent: &Agent| {
        let name = app.caller.model(*agent);
        name == model || matches_name(app.caller.base_model(*agent), model)
    };
    if let Some(agent) = agents().find(configured) {
        return Some(Served { agent, adapter: AdapterChoice::OfAgent, name: app.caller.model(agent).to_owned() });
    }
    let (base, adapter) = model.rsplit_once(':')?;
    let has = |agent: &Agent| {
        let adapters = app.caller.adapters(*agent);
        matches_name(app.caller.base_model(*agent), base)
            && !adapters.is_empty()
            && (adapter == NO_ADAPTER || adapters.iter().any(|known| known == adapter))
    };
    let agent = agents().find(has)?;
    let base = app.caller.base_model(agent);
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
pub(crate) fn embedder(app: &App, model: &str) -> Result<()> {
    let matches = |model: &str| matches_name(app.embedder.name(), model);
    if app.embedder.dims() > 0 && (matches(model) || model.strip_suffix(LATEST).is_some_and(matches)) {
        return Ok(());
    }
    Err(ServerError::UnknownModel(model.to_owned()))
}

/// Whether a request for a model means the one of this name: the variant may be omitted, and `:latest` added.
pub(crate) fn matches_name(name: &str, requested: &str) -> bool {
    let is = |requested: &str| name == requested || name.split_once(':').is_some_and(|(name, _)| name == requested);
    is(requested) || requested.strip_suffix(LATEST).is_some_and(is)
}

/// An entry of the list, with the names that OpenAI's and Anthropic's clients read.
fn entry(app: &App, id: &str, title: &str) -> Value {
    json!({ "id": id, "object": "model", "created": app.started_seconds, "owned_by": "memlocal",
        "type": "model", "display_name": title, "created_at": rfc3339(app.started_seconds) })
}

/// `max_model_len` is vLLM's name for the context length.
fn object(app: &App, name: &str) -> Value {
    let mut object = entry(app, name, name);
    if let Ok(served) = served(app, name) {
        object["max_model_len"] = app.caller.context_tokens(served.agent).into();
        let base = app.caller.base_model(served.agent);
        if name != base {
            object["parent"] = base.into();
        }
    }
    object
}

/// A model that is loaded when a request names it.
fn loadable_object(app: &App, model: &ShelfModel) -> Value {
    let mut object = entry(app, &model.name, &model.name);
    object["max_model_len"] = model.context_tokens.into();
    let is_meant = |name: &String| *name == model.name || Some(name) == model.alias_of.as_ref();
    let loaded = app.residents.all().iter().any(|resident| is_meant(&resident.name)) || names(app).iter().any(is_meant);
    object["loaded"] = loaded.into();
    object
}

/// A corpus as a model. Open WebUI shows its `name`; the page knows it by its `corpus`.
fn corpus_object(app: &App, model: &CorpusModel) -> Value {
    let mut object = entry(app, &model.name(), &model.title);
    object["name"] = model.title.as_str().into();
    object["corpus"] = model.corpus.as_str().into();
    object["max_model_len"] = CorpusModel::context_tokens(app).into();
    object
}

/// List the models that are loaded or that a request may have loaded (`loaded`), and the corpora, which answer from memory.
#[utoipa::path(get, path = "/v1/models", tag = "OpenAI", responses((status = 200, body = Value)))]
pub(super) async fn list(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    let mut models: Vec<Value> = names(&app).iter().map(|name| object(&app, name)).collect();
    models.extend(loadable(&app).await?.iter().map(|model| loadable_object(&app, model)));
    let corpora = recall::names(&app, &tenant).await?;
    models.extend(corpora.iter().map(|model| corpus_object(&app, model)));
    let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
    let (first, last) = (id(models.first()), id(models.last()));
    Ok(Json(json!({ "object": "list", "data": models, "has_more": false, "first_id": first, "last_id": last })))
}

/// Show one model.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "OpenAI", params(("model" = String, Path)),
    responses((status = 200, body = Value), (status = 404, description = "No such model")))]
pub(super) async fn show(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(model): Path<String>,
) -> Result<Json<Value>> {
    if let Some(corpus) = recall::names(&app, &tenant).await?.iter().find(|corpus| corpus.name() == model) {
        return Ok(Json(corpus_object(&app, corpus)));
    }
    if let Some(found) = loadable(&app).await?.iter().find(|found| matches_name(&found.name, &model)) {
        return Ok(Json(loadable_object(&app, found)));
    }
    let listed = names(&app).into_iter().find(|name| *name == model);
    let name = match listed {
        Some(name) => name,
        None if embedder(&app, &model).is_ok() => app.embedder.name().to_owned(),
        None => served(&app, &model)?.name,
    };
    Ok(Json(object(&app, &name)))
}
