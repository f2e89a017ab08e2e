//! POST /api/chat and /api/generate.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use calls::{Call, Prompt, Stability};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::corpus::{self, CorpusChat};
use super::keep::{Asked, Asking};
use super::messages::{OllamaMessage, continued, prompt, refuse_images};
use super::options::{Options, Wishes, call};
use super::reply::{Dialect, Times, reply_to};
use super::tools::with_lists_of_types;
use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::openai::params::refuse_if;
use crate::openai::tools::{self, Tool};
use crate::recall::{Address, warn_of_unused};
use crate::tenant::CurrentTenant;
use crate::warnings::Warnings;

/// A chat; one without messages asks whether the model is loaded. If the last message is the assistant's and has text only, the
/// reply continues it, without a `format` or a thought.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaChat {
    model: String,
    #[serde(default)]
    messages: Vec<OllamaMessage>,
    tools: Option<Vec<Tool>>,
    stream: Option<bool>,
    /// `json` or a JSON schema.
    format: Option<Value>,
    #[schema(value_type = Option<Options>)]
    options: Option<Map<String, Value>>,
    /// True, false, `low`, `medium` or `high`.
    think: Option<Value>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    /// How long the model stays loaded after this request, if it was loaded on demand: seconds, or a time such as `5m`; 0
    /// unloads it, and a negative time keeps it.
    keep_alive: Option<Value>,
    /// A prompt that does not fit is refused in any case.
    #[serde(rename = "truncate")]
    _truncate: Option<bool>,
    /// A reply that does not fit ends in any case.
    #[serde(rename = "shift")]
    _shift: Option<bool>,
}

/// A prompt to continue; an empty one asks whether the model is loaded.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaGenerate {
    model: String,
    #[serde(default)]
    prompt: String,
    /// The text behind the place that the prompt is to be continued to; without a chat template. Refused for models whose
    /// tokenizer has no tokens for it.
    suffix: Option<String>,
    system: Option<String>,
    /// Refused unless empty.
    images: Option<Vec<Value>>,
    /// True to pass the prompt to the model without a chat template.
    #[serde(default)]
    raw: bool,
    stream: Option<bool>,
    /// `json` or a JSON schema.
    format: Option<Value>,
    #[schema(value_type = Option<Options>)]
    options: Option<Map<String, Value>>,
    /// True, false, `low`, `medium` or `high`.
    think: Option<Value>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    /// How long the model stays loaded after this request, if it was loaded on demand: seconds, or a time such as `5m`; 0
    /// unloads it, and a negative time keeps it.
    keep_alive: Option<Value>,
    /// A prompt that does not fit is refused in any case.
    #[serde(rename = "truncate")]
    _truncate: Option<bool>,
    /// A reply that does not fit ends in any case.
    #[serde(rename = "shift")]
    _shift: Option<bool>,
}

/// Continue a chat.
#[utoipa::path(post, path = "/api/chat", tag = "Ollama", request_body = OllamaChat,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
pub(super) async fn chat(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    address: Address,
    AdmittedJson(request, permit): AdmittedJson<OllamaChat>,
) -> Result<Response> {
    let times = Times::start();
    let asked =
        Asked { name: &request.model, keep_alive: request.keep_alive.as_ref(), is_empty: request.messages.is_empty() };
    let (app, name, corpus) = match asked.answering(&app, &tenant, &warnings).await? {
        Asking::Loaded(app, name, corpus) => (app, name, corpus),
        Asking::Unloaded(name) => return Ok(Dialect::Chat.loaded(&name, "unload", &times)),
    };
    if request.messages.is_empty() {
        return Ok(Dialect::Chat.loaded(&name, "load", &times));
    }
    let streams = request.stream.unwrap_or(true);
    let wishes = Wishes {
        format: request.format,
        options: request.options,
        think: request.think,
        logprobs: request.logprobs,
        top_logprobs: request.top_logprobs,
    };
    if let Some(model) = corpus {
        warn_of_unused(&[("tools", request.tools.is_some_and(|tools| !tools.is_empty()))], &warnings);
        let prompt = prompt(request.messages, Vec::new(), &name, &warnings)?;
        let chat = CorpusChat { model, address, prompt, wishes, dialect: Dialect::Chat, streams };
        return corpus::reply(app, tenant, chat, permit, &warnings).await;
    }
    let served = app.served(&request.model)?;
    let (offered, tools) = tools::read(request.tools.map(with_lists_of_types), None, true, &warnings)?;
    let prompt = prompt(request.messages, offered, &name, &warnings)?;
    let prompt = continued(prompt, &wishes)?.or_system(&app.preset.system);
    let call = Call { tenant: tenant.id, ..call(&served, prompt, tools, wishes, &warnings, &app).await? };
    reply_to(app, permit, call, served.name, Dialect::Chat, streams, times).await
}

/// Complete a prompt.
#[utoipa::path(post, path = "/api/generate", tag = "Ollama", request_body = OllamaGenerate,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
pub(super) async fn generate(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    address: Address,
    AdmittedJson(request, permit): AdmittedJson<OllamaGenerate>,
) -> Result<Response> {
    let times = Times::start();
    let asked =
        Asked { name: &request.model, keep_alive: request.keep_alive.as_ref(), is_empty: request.prompt.is_empty() };
    let (app, name, corpus) = match asked.answering(&app, &tenant, &warnings).await? {
        Asking::Loaded(app, name, corpus) => (app, name, corpus),
        Asking::Unloaded(name) => return Ok(Dialect::Generate.loaded(&name, "unload", &times)),
    };
    refuse_images(request.images.as_deref(), &name)?;
    let suffix = request.suffix.filter(|suffix| !suffix.is_empty());
    refuse_if(suffix.is_some() && corpus.is_some(), "suffix")?;
    if suffix.is_some() && !matches!(request.think, None | Some(Value::Bool(false))) {
        return Err(ServerError::invalid(
            "a model does not think before it fills in a text: omit `think` or `suffix`",
            "think",
        ));
    }
    if request.prompt.is_empty() {
        return Ok(Dialect::Generate.loaded(&name, "load", &times));
    }
    let streams = request.stream.unwrap_or(true);
    let prompt = if let Some(suffix) = suffix {
        Prompt::infill(request.prompt, suffix)
    } else if request.raw && corpus.is_none() {
        Prompt::bare(request.prompt)
    } else {
        let system = request.system.filter(|system| !system.is_empty());
        let system = system.map_or_else(Prompt::new, |system| Prompt::new().system(system));
        system.user(Stability::Volatile, request.prompt).or_system(&app.preset.system)
    };
    let wishes = Wishes {
        format: request.format,
        options: request.options,
        think: request.think,
        logprobs: request.logprobs,
        top_logprobs: request.top_logprobs,
    };
    if let Some(model) = corpus {
        let chat = CorpusChat { model, address, prompt, wishes, dialect: Dialect::Generate, streams };
        return corpus::reply(app, tenant, chat, permit, &warnings).await;
    }
    let served = app.served(&request.model)?;
    let call = Call { tenant: tenant.id, ..call(&served, prompt, None, wishes, &warnings, &app).await? };
    reply_to(app, permit, call, served.name, Dialect::Generate, streams, times).await
}
