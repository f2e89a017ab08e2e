//! GET /v1/models: the loaded models and their adapters, and the corpora.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::paging::{ModelsPart, listed_models};
use crate::app::App;
use crate::body::Params;
use crate::error::Result;
use crate::loading::Presence;
use crate::offered::{loadable, names};
use crate::pulling::ShelfModel;
use crate::recall::{self, CorpusModel};
use crate::served::matches_name;
use crate::tenant::CurrentTenant;
use crate::time::rfc3339;

/// An entry of the list, with the names that OpenAI's and Anthropic's clients read.
fn entry(app: &App, id: &str, title: &str) -> Value {
    json!({ "id": id, "object": "model", "created": app.started_seconds, "owned_by": "memlocal",
        "type": "model", "display_name": title, "created_at": rfc3339(app.started_seconds) })
}

/// `max_model_len` is vLLM's name for the context length.
fn object(app: &App, name: &str) -> Value {
    let mut object = entry(app, name, name);
    if let Ok(served) = app.served(name) {
        object["max_model_len"] = app.caller.tokens().context_tokens(served.agent).into();
        let base = app.caller.models().base_model(served.agent);
        object["loaded"] = (!app.residents.presence(base).has_left()).into();
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
    let fixed = names(app).into_iter().find(is_meant);
    let is_here = fixed.is_some_and(|name| !app.presence(&name).is_some_and(Presence::has_left));
    object["loaded"] = (is_here || app.residents.all().iter().any(|resident| is_meant(&resident.name))).into();
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
#[utoipa::path(get, path = "/v1/models", tag = "OpenAI", params(ModelsPart), responses((status = 200, body = Value)))]
pub(super) async fn list(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Params(part): Params<ModelsPart>,
) -> Result<Json<Value>> {
    let mut models: Vec<Value> = names(&app).iter().map(|name| object(&app, name)).collect();
    models.extend(loadable(&app).await?.iter().map(|model| loadable_object(&app, model)));
    let corpora = recall::names(&app, &tenant).await?;
    models.extend(corpora.iter().map(|model| corpus_object(&app, model)));
    Ok(Json(listed_models(models, &part)?))
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
        None if app.check_embedder(&model).is_ok() => app.embedder.name().to_owned(),
        None => app.served(&model)?.name,
    };
    Ok(Json(object(&app, &name)))
}
