//! GET /v1/models: the loaded models, and the agent that serves a model's name.

use axum::Json;
use axum::extract::{Path, State};
use calls::Role;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{Result, ServerError};

/// The names of all models: language models first, then the embedder.
pub(crate) fn names(app: &App) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let language = [Role::Responder].into_iter().chain(Role::ALL).map(|role| app.caller.model(role).to_owned());
    for name in language.chain((app.embedder.dims() > 0).then(|| app.embedder.name().to_owned())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// An agent served by the language model of this name; the variant (`name:variant`) may be omitted.
///
/// # Errors
/// [`ServerError::UnknownModel`].
pub(crate) fn role(app: &App, model: &str) -> Result<Role> {
    let mut roles = [Role::Responder].into_iter().chain(Role::ALL);
    roles
        .find(|role| matches_name(app.caller.model(*role), model))
        .ok_or_else(|| ServerError::UnknownModel(model.to_owned()))
}

/// Checks the name of the embedder.
///
/// # Errors
/// [`ServerError::UnknownModel`].
pub(crate) fn embedder(app: &App, model: &str) -> Result<()> {
    if app.embedder.dims() > 0 && matches_name(app.embedder.name(), model) {
        return Ok(());
    }
    Err(ServerError::UnknownModel(model.to_owned()))
}

fn matches_name(name: &str, requested: &str) -> bool {
    name == requested || name.split_once(':').is_some_and(|(name, _)| name == requested)
}

/// `max_model_len` is vLLM's name for the context length.
fn object(app: &App, name: &str) -> Value {
    let mut object = json!({ "id": name, "object": "model", "created": app.started_seconds, "owned_by": "memlocal" });
    if let Ok(role) = role(app, name) {
        object["max_model_len"] = app.caller.context_tokens(role).into();
    }
    object
}

/// List the loaded models.
#[utoipa::path(get, path = "/v1/models", tag = "OpenAI", responses((status = 200, body = Value)))]
pub(super) async fn list(State(app): State<App>) -> Json<Value> {
    let models: Vec<Value> = names(&app).iter().map(|name| object(&app, name)).collect();
    Json(json!({ "object": "list", "data": models }))
}

/// Show one model.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "OpenAI", params(("model" = String, Path)),
    responses((status = 200, body = Value), (status = 404, description = "No such model")))]
pub(super) async fn show(State(app): State<App>, Path(model): Path<String>) -> Result<Json<Value>> {
    let name = names(&app).into_iter().find(|name| matches_name(name, &model));
    name.map(|name| Json(object(&app, &name))).ok_or(ServerError::UnknownModel(model))
}
