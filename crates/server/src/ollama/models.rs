//! What clients ask about models: which there are, which are in memory, and what they are.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use calls::{Agent, ModelDetails};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::{App, since_1970};
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::loading::{Presence, Resident};
use crate::offered::{loadable, names};
use crate::pulling::{Preset, Shelf, ShelfModel, find_named};
use crate::recall::{self, CorpusModel};
use crate::served::LATEST;
use crate::status;
use crate::tenant::CurrentTenant;
use crate::time::rfc3339;

/// A model by its name. `name` is the older form of `model`.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaModel {
    model: Option<String>,
    name: Option<String>,
    /// Whether a pull reports its progress in lines; true by default.
    pub stream: Option<bool>,
    /// The description is complete in any case.
    #[serde(rename = "verbose")]
    _verbose: Option<bool>,
    /// The hub is always checked.
    #[serde(rename = "insecure")]
    _insecure: Option<bool>,
}

impl OllamaModel {
    pub fn name(&self) -> Result<&str> {
        let given = [&self.model, &self.name].into_iter().flatten().find(|name| !name.is_empty());
        given.map(String::as_str).ok_or_else(|| ServerError::invalid("model is required", "model"))
    }
}

/// A model that is loaded or can be.
struct Described {
    /// With a tag.
    name: String,
    is_embedder: bool,
    context_tokens: usize,
    details: ModelDetails,
    digest: String,
    preset: Preset,
}

/// When a model leaves memory that stays: never, as a date that clients can read.
const NEVER: &str = "9999-12-31T23:59:59Z";

/// A name as Ollama lists it: without a tag of its own it has the tag `latest`.
fn tagged(name: &str) -> String {
    let has_tag = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if has_tag { name.to_owned() } else { name.to_owned() + LATEST }
}

/// The model of this name: one that the server was started with, or one on the disk that it may load.
async fn described(app: &App, name: &str) -> Result<Described> {
    let (agent, name) = match app.served(name) {
        Ok(served) => (Some(served.agent), served.name),
        Err(_) if app.check_embedder(name).is_ok() => (None, app.embedder.name().to_owned()),
        Err(unknown) => {
            let name = name.to_owned();
            let here = here(app, move |shelf| find_named(shelf, &name)).await?.flatten();
            return here.filter(|_| app.loads_models()).map(|model| on_disk(app, model)).ok_or(unknown);
        }
    };
    let app = Arc::clone(app);
    // Its digest is computed when it is first asked for.
    run_blocking(move || {
        let (details, digest) = match agent {
            Some(agent) => (app.caller.models().details(agent), app.caller.models().digest(agent)),
            None => (app.embedder.details(), app.embedder.digest()),
        };
        let unknown = || ModelDetails {
            parameters: agent.and_then(|agent| app.caller.models().parameters(agent)).unwrap_or(0),
            modified_seconds: app.started_seconds,
            ..ModelDetails::default()
        };
        let details = details.unwrap_or_else(unknown);
        let window = || app.embedder.window_tokens();
        let context_tokens = agent.map_or_else(window, |agent| app.caller.tokens().context_tokens(agent));
        let (name, digest) = (tagged(&name), digest.unwrap_or_default());
        Ok(Described { name, is_embedder: agent.is_none(), context_tokens, details, digest, preset: Preset::default() })
    })
    .await
}

/// A model of the shelf. What a loaded one knows of itself replaces what its files say.
fn on_disk(app: &App, model: ShelfModel) -> Described {
    let resident = app.residents.all().into_iter().find(|resident| resident.name == model.name);
    let caller = resident.map(|resident| resident.caller);
    let details = caller.as_ref().and_then(|caller| caller.models().details(Agent::Responder)).unwrap_or(model.details);
    let context_tokens = caller.map_or(model.context_tokens, |caller| caller.tokens().context_tokens(Agent::Responder));
    Described {
        name: tagged(&model.name),
        is_embedder: false,
        context_tokens,
        details,
        digest: model.digest,
        preset: model.preset,
    }
}

/// Asks the shelf, if there is one.
async fn here<T: Send + 'static>(app: &App, ask: impl FnOnce(&dyn Shelf) -> T + Send + 'static) -> Result<Option<T>> {
    let Some(shelf) = app.config.shelf.clone() else { return Ok(None) };
    run_blocking(move || Ok(Some(ask(&*shelf)))).await
}

impl Described {
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
        if self.is_embedder {
            return vec!["embedding"];
        }
        let ModelDetails { thinks, infills, .. } = self.details;
        let more = [infills.then_some("insert"), thinks.then_some("thinking")];
        ["completion", "tools"].into_iter().chain(more.into_iter().flatten()).collect()
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
        "parent_model": app.caller.models().model(Agent::Responder), "format": "corpus", "family": "memlocal",
        "families": ["memlocal"], "parameter_size": "", "quantization_level": "",
    })
}

/// List the models that are loaded or can be, and the corpora, which answer from memory.
#[utoipa::path(get, path = "/api/tags", tag = "Ollama", responses((status = 200, body = Value)))]
pub(super) async fn tags(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    let mut models = Vec::new();
    for name in names(&app) {
        models.push(described(&app, &name).await?.to_json());
    }
    models.extend(loadable(&app).await?.into_iter().map(|model| on_disk(&app, model).to_json()));
    models.extend(recall::names(&app, &tenant).await?.iter().map(|model| corpus_json(&app, model)));
    Ok(Json(json!({ "models": models })))
}

/// List the models that are in memory, and when they leave it.
#[utoipa::path(get, path = "/api/ps", tag = "Ollama", responses((status = 200, body = Value)))]
pub(super) async fn ps(State(app): State<App>) -> Result<Json<Value>> {
    let mut models = Vec::new();
    let expiry =
        |time: Option<Duration>| time.map_or_else(|| NEVER.to_owned(), |time| rfc3339((since_1970() + time).as_secs()));
    for name in names(&app) {
        let presence = app.presence(&name);
        if presence.is_some_and(Presence::has_left) {
            continue;
        }
        let model = described(&app, &name).await?;
        let bytes = model.details.bytes + cache_bytes(&app, &name);
        models.push(in_memory(&model, bytes, expiry(presence.and_then(|presence| presence.status()?.expires_in))));
    }
    for resident in app.residents.all() {
        let Resident { name, memory_bytes, .. } = &resident;
        let listed = loadable(&app).await?.into_iter().find(|model| model.name == *name);
        let unlisted = || ShelfModel { name: name.clone(), ..ShelfModel::default() };
        let model = on_disk(&app, listed.unwrap_or_else(unlisted));
        models.push(in_memory(&model, *memory_bytes, expiry(resident.status().expires_in)));
    }
    Ok(Json(json!({ "models": models })))
}

/// Bytes of the KV pages of a model that the server was started with; its adapters share them.
fn cache_bytes(app: &App, name: &str) -> u64 {
    let states = status::states(&*app.fixed);
    let state = states.iter().find(|state| {
        state.model == name || name.strip_prefix(&*state.model).is_some_and(|rest| rest.starts_with(':'))
    });
    state.map_or(0, |state| state.total_pages as u64 * state.page_bytes as u64)
}

fn in_memory(model: &Described, bytes: u64, expires: String) -> Value {
    let mut shown = model.to_json();
    shown["size"] = bytes.into();
    shown["expires_at"] = expires.into();
    shown["size_vram"] = if model.details.on_gpu { bytes } else { 0 }.into();
    shown["context_length"] = model.context_tokens.into();
    shown
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
    let model = described(&app, request.name()?).await?;
    let ModelDetails { family, parameters, .. } = &model.details;
    let family = if family.is_empty() { "unknown" } else { family };
    let context_tokens = model.context_tokens;
    let mut info = Map::new();
    info.insert("general.architecture".into(), family.into());
    info.insert("general.parameter_count".into(), (*parameters).into());
    info.insert(format!("{family}.context_length"), context_tokens.into());
    if model.is_embedder {
        info.insert(format!("{family}.embedding_length"), app.embedder.dims().into());
    }
    let Preset { system, parameters } = &model.preset;
    let parameters = parameter_lines(parameters, context_tokens);
    let mut modelfile = format!("FROM {}\n", model.name);
    modelfile.extend(parameters.iter().map(|line| format!("PARAMETER {line}\n")));
    if !system.is_empty() {
        modelfile.extend(["SYSTEM \"\"\"", system, "\"\"\"\n"]);
    }
    Ok(Json(json!({
        "modelfile": modelfile, "parameters": parameters.join("\n"), "system": system, "template": template(&model.details), "details": model.details_json(),
        "model_info": info, "capabilities": model.capabilities(), "modified_at": rfc3339(model.details.modified_seconds),
    })))
}

/// What begins the template of a model that fills in the middle of a text, as Ollama writes it: Continue looks for `.Suffix`.
const INFILL: &str = "{{- if .Suffix }}<|fim_prefix|>{{ .Prompt }}<|fim_suffix|>{{ .Suffix }}<|fim_middle|>{{- else }}";

/// The chat template of a model, and how it fills in the middle of a text if it does.
fn template(ModelDetails { template, infills, .. }: &ModelDetails) -> String {
    if *infills { format!("{INFILL}{template}{{{{- end }}}}") } else { template.clone() }
}

/// Options as Ollama writes them: each a line, and each stop string its own.
fn parameter_lines(parameters: &Map<String, Value>, context_tokens: usize) -> Vec<String> {
    let context = (!parameters.contains_key("num_ctx")).then(|| format!("num_ctx {context_tokens}"));
    let lines = parameters.iter().flat_map(|(name, value)| {
        let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        values.into_iter().map(move |value| format!("{name} {value}"))
    });
    context.into_iter().chain(lines).collect()
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
