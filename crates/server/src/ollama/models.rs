//! What clients ask about models: which there are, what they are, and to fetch them. Models neither come nor leave while the
//! server runs.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Agent, ModelDetails};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::openai::{LATEST, embedder, names, served};
use crate::recall::{self, CorpusModel};
use crate::stream::{Framing, Sink, respond};
use crate::time::rfc3339;

/// A model by its name. `name` is the older form of `model`.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaModel {
    model: Option<String>,
    name: Option<String>,
    /// Whether a pull reports its progress in lines; true by default.
    stream: Option<bool>,
    /// The description is complete in any case.
    #[serde(rename = "verbose")]
    _verbose: Option<bool>,
    /// Nothing is fetched.
    #[serde(rename = "insecure")]
    _insecure: Option<bool>,
}

impl OllamaModel {
    fn name(&self) -> Result<&str> {
        let given = [&self.model, &self.name].into_iter().flatten().find(|name| !name.is_empty());
        given.map(String::as_str).ok_or_else(|| ServerError::invalid("model is required", "model"))
    }
}

/// A loaded model.
struct Loaded {
    /// With a tag.
    name: String,
    /// The agent that it serves; an embedder serves none.
    agent: Option<Agent>,
    details: ModelDetails,
    digest: String,
}

/// When a model leaves memory: never, as a date that clients can read.
const NEVER: &str = "9999-12-31T23:59:59Z";

/// A name as Ollama lists it: without a tag of its own it has the tag `latest`.
fn tagged(name: &str) -> String {
    let has_tag = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if has_tag { name.to_owned() } else { name.to_owned() + LATEST }
}

/// The model of this name. Its digest is computed when it is first asked for.
async fn loaded(app: &App, name: &str) -> Result<Loaded> {
    let (agent, name) = match served(app, name) {
        Ok(served) => (Some(served.agent), served.name),
        Err(unknown) => match embedder(app, name) {
            Ok(()) => (None, app.embedder.name().to_owned()),
            Err(_) => return Err(unknown),
        },
    };
    let app = Arc::clone(app);
    run_blocking(move || {
        let (details, digest) = match agent {
            Some(agent) => (app.caller.details(agent), app.caller.digest(agent)),
            None => (app.embedder.details(), app.embedder.digest()),
        };
        let unknown = || ModelDetails {
            parameters: agent.and_then(|agent| app.caller.parameters(agent)).unwrap_or(0),
            modified_seconds: app.started_seconds,
            ..ModelDetails::default()
        };
        let details = details.unwrap_or_else(unknown);
        Ok(Loaded { name: tagged(&name), agent, details, digest: digest.unwrap_or_default() })
    })
    .await
}

impl Loaded {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name, "model": self.name, "modified_at": rfc3339(self.details.modified_seconds),
            "size": self.details.bytes, "digest": self.digest, "details": self.details_json(),
            "capabilities": self.capabilities(),
        })
    }

    fn details_json(&self) -> Value {
        let ModelDetails { format, family, quantisation, .. } = &self.details;
        json!({
            "parent_model": "", "format": format, "family": family, "families": [family],
            "parameter_size": parameter_size(self.details.parameters), "quantization_level": quantisation,
        })
    }

    fn capabilities(&self) -> Vec<&'static str> {
        if self.agent.is_none() {
            return vec!["embedding"];
        }
        ["completion", "tools"].into_iter().chain(self.details.thinks.then_some("thinking")).collect()
    }

    /// Tokens that the model reads.
    fn context_tokens(&self, app: &App) -> usize {
        self.agent.map_or_else(|| app.embedder.window_tokens(), |agent| app.caller.context_tokens(agent))
    }
}

/// A number of weights as Ollama writes it: 494.03M, 7.6B. Empty if it is not known.
fn parameter_size(parameters: u64) -> String {
    let shown = |unit: u64, digits: usize, letter: char| {
        let digits = if parameters.is_multiple_of(unit) { 0 } else { digits };
        format!("{:.digits$}{letter}", parameters as f64 / unit as f64)
    };
    match parameters {
        0 => String::new(),
        1_000_000_000.. => shown(1_000_000_000, 1, 'B'),
        1_000_000.. => shown(1_000_000, 2, 'M'),
        1_000.. => shown(1_000, 0, 'K'),
        few => few.to_string(),
    }
}

/// A corpus as a model. Its steps come as thoughts.
fn corpus_json(app: &App, model: &CorpusModel) -> Value {
    let name = tagged(&model.name());
    json!({
        "name": name, "model": name, "modified_at": rfc3339(app.started_seconds), "size": 0, "digest": model.digest(),
        "details": corpus_details(app), "capabilities": ["completion", "thinking"],
    })
}

fn corpus_details(app: &App) -> Value {
    json!({
        "parent_model": app.caller.model(Agent::Responder), "format": "corpus", "family": "memlocal",
        "families": ["memlocal"], "parameter_size": "", "quantization_level": "",
    })
}

/// List the models, and the corpora, which answer from memory.
#[utoipa::path(get, path = "/api/tags", tag = "Ollama", responses((status = 200, body = Value)))]
pub(super) async fn tags(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    let mut models = Vec::new();
    for name in names(&app) {
        models.push(loaded(&app, &name).await?.to_json());
    }
    models.extend(recall::names(&app, &tenant).await?.iter().map(|model| corpus_json(&app, model)));
    Ok(Json(json!({ "models": models })))
}

/// List the models that are in memory: all of them.
#[utoipa::path(get, path = "/api/ps", tag = "Ollama", responses((status = 200, body = Value)))]
pub(super) async fn ps(State(app): State<App>) -> Result<Json<Value>> {
    let mut models = Vec::new();
    for name in names(&app) {
        let model = loaded(&app, &name).await?;
        let mut shown = model.to_json();
        shown["expires_at"] = NEVER.into();
        shown["size_vram"] = if model.details.on_gpu { model.details.bytes } else { 0 }.into();
        shown["context_length"] = model.context_tokens(&app).into();
        models.push(shown);
    }
    Ok(Json(json!({ "models": models })))
}

/// Show a model, or a corpus.
#[utoipa::path(post, path = "/api/show", tag = "Ollama", request_body = OllamaModel, responses((status = 200, body = Value)))]
pub(super) async fn show(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<OllamaModel>,
) -> Result<Json<Value>> {
    if let Some(model) = recall::find(&app, &tenant, request.name()?).await? {
        let context_tokens = CorpusModel::context_tokens(&app);
        let shown = corpus_json(&app, &model);
        return Ok(Json(json!({
            "modelfile": format!("FROM {}\n", model.name()), "parameters": format!("num_ctx {context_tokens}"),
            "template": "", "details": shown["details"], "modified_at": shown["modified_at"],
            "model_info": { "general.architecture": "memlocal", "memlocal.context_length": context_tokens },
            "capabilities": shown["capabilities"],
        })));
    }
    let model = loaded(&app, request.name()?).await?;
    let ModelDetails { family, template, parameters, .. } = &model.details;
    let family = if family.is_empty() { "unknown" } else { family };
    let context_tokens = model.context_tokens(&app);
    let mut info = Map::new();
    info.insert("general.architecture".into(), family.into());
    info.insert("general.parameter_count".into(), (*parameters).into());
    info.insert(format!("{family}.context_length"), context_tokens.into());
    if model.agent.is_none() {
        info.insert(format!("{family}.embedding_length"), app.embedder.dims().into());
    }
    Ok(Json(json!({
        "modelfile": format!("FROM {}\nPARAMETER num_ctx {context_tokens}\n", model.name),
        "parameters": format!("num_ctx {context_tokens}"), "template": template, "details": model.details_json(),
        "model_info": info, "capabilities": model.capabilities(), "modified_at": rfc3339(model.details.modified_seconds),
    })))
}

/// Fetch a model; one that is loaded is there already, and no other can be fetched while the server runs.
#[utoipa::path(post, path = "/api/pull", tag = "Ollama", request_body = OllamaModel,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
pub(super) async fn pull(State(app): State<App>, Body(request): Body<OllamaModel>) -> Result<Response> {
    let name = request.name()?;
    let model = loaded(&app, name).await.map_err(|error| match error {
        ServerError::UnknownModel(name) => fixed(&format!("{name} is not loaded here and cannot be pulled")),
        error => error,
    })?;
    if !request.stream.unwrap_or(true) {
        return Ok(Json(json!({ "status": "success" })).into_response());
    }
    respond(Framing::Lines, |sink: Sink| async move {
        sink.json(&json!({ "status": "pulling manifest" }));
        let (digest, bytes) = (&model.digest, model.details.bytes);
        if let Some(start) = digest.get(..12) {
            let status = format!("pulling {start}");
            sink.json(&json!({ "status": status, "digest": digest, "total": bytes, "completed": bytes }));
        }
        sink.json(&json!({ "status": "success" }));
        Ok(())
    })
    .await
}

/// Make a model: refused.
#[utoipa::path(post, path = "/api/create", tag = "Ollama", responses((status = 400, description = "Refused")))]
pub(super) async fn create() -> ServerError {
    fixed("models cannot be created here")
}

/// Copy a model: refused.
#[utoipa::path(post, path = "/api/copy", tag = "Ollama", responses((status = 400, description = "Refused")))]
pub(super) async fn copy() -> ServerError {
    fixed("models cannot be copied here")
}

/// Delete a model: refused.
#[utoipa::path(delete, path = "/api/delete", tag = "Ollama", responses((status = 400, description = "Refused")))]
pub(super) async fn delete() -> ServerError {
    fixed("models cannot be deleted here")
}

/// The refusal of a change to the set of models.
fn fixed(what: &str) -> ServerError {
    let message = format!(
        "{what}: the models are fixed while the server runs; `memlocal models` lists, pulls and removes them, and \
         `memlocal serve --model NAME` loads one"
    );
    ServerError::Invalid { message, param: None }
}

/// The version of this server.
#[utoipa::path(get, path = "/api/version", tag = "Ollama", responses((status = 200, body = Value)))]
pub(super) async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION") }))
}

#[cfg(test)]
mod tests {
    use super::{parameter_size, tagged};

    #[test]
    fn sizes_and_names_are_written_as_by_ollama() {
        let sizes = [0, 999, 494_032_768, 1_000_000_000, 7_615_616_512].map(parameter_size);
        assert_eq!(sizes, ["", "999", "494.03M", "1B", "7.6B"]);
        let names = ["qwen:q4", "scripted", "./models:old/a.gguf"].map(tagged);
        assert_eq!(names, ["qwen:q4", "scripted:latest", "./models:old/a.gguf:latest"]);
    }
}
