//! POST /api/chat and /api/generate.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, OnText, Prompt, Reply, Stability};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::options::{Options, Wishes, call};
use super::time::rfc3339;
use crate::admission::{AdmittedJson, Permit};
use crate::app::{App, since_1970};
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::openai::{NO_INFILL, closing_reason, logprob_entries, served};
use crate::stream::{Framing, Sink, respond};
use crate::warnings::Warnings;

/// A chat; one without messages asks whether the model is loaded.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaChat {
    model: String,
    #[serde(default)]
    messages: Vec<OllamaMessage>,
    /// Refused unless empty.
    tools: Option<Vec<Value>>,
    stream: Option<bool>,
    /// `json` or a JSON schema.
    format: Option<Value>,
    #[schema(value_type = Option<Options>)]
    options: Option<Map<String, Value>>,
    /// True, false, `low`, `medium` or `high`.
    think: Option<Value>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    /// Models stay loaded while the server runs.
    keep_alive: Option<Value>,
    /// A prompt that does not fit is refused in any case.
    #[serde(rename = "truncate")]
    _truncate: Option<bool>,
    /// A reply that does not fit ends in any case.
    #[serde(rename = "shift")]
    _shift: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct OllamaMessage {
    role: OllamaRole,
    content: Option<String>,
    /// Refused unless empty.
    images: Option<Vec<Value>>,
    /// Refused unless empty.
    tool_calls: Option<Vec<Value>>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OllamaRole {
    System,
    User,
    Assistant,
    Tool,
}

/// A prompt to continue; an empty one asks whether the model is loaded.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaGenerate {
    model: String,
    #[serde(default)]
    prompt: String,
    /// Refused unless empty.
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
    /// Models stay loaded while the server runs.
    keep_alive: Option<Value>,
    /// A prompt that does not fit is refused in any case.
    #[serde(rename = "truncate")]
    _truncate: Option<bool>,
    /// A reply that does not fit ends in any case.
    #[serde(rename = "shift")]
    _shift: Option<bool>,
}

/// Response format: chat and generate differ only in this.
#[derive(Debug, Clone, Copy)]
enum Dialect {
    Chat,
    Generate,
}

impl Dialect {
    fn object(self, model: &str, text: &str) -> Value {
        let created = rfc3339(since_1970().as_secs());
        match self {
            Dialect::Chat => {
                json!({ "model": model, "created_at": created, "message": { "role": "assistant", "content": text }, "done": false })
            }
            Dialect::Generate => json!({ "model": model, "created_at": created, "response": text, "done": false }),
        }
    }

    /// The final object, with thought, token counts and times.
    fn end(self, model: &str, text: &str, reply: &Reply, times: &Times) -> Value {
        let mut object = self.object(model, text);
        if let Some(thought) = &reply.thought {
            match self {
                Dialect::Chat => object["message"]["thinking"] = thought.as_str().into(),
                Dialect::Generate => object["thinking"] = thought.as_str().into(),
            }
        }
        if !reply.logprobs.is_empty() {
            object["logprobs"] = logprob_entries(&reply.logprobs).into();
        }
        object["done"] = true.into();
        object["done_reason"] = closing_reason(reply.finish).into();
        let (total, reading) = times.nanoseconds();
        object["total_duration"] = total.into();
        object["load_duration"] = 0.into();
        object["prompt_eval_count"] = reply.usage.prompt_tokens.into();
        object["prompt_eval_duration"] = reading.into();
        object["eval_count"] = reply.usage.output_tokens.into();
        object["eval_duration"] = (total - reading).into();
        object
    }

    /// The answer to a request without a prompt, which loads a model or, with a `keep_alive` of 0, unloads it.
    fn loaded(self, model: &str, keep_alive: Option<&Value>, warnings: &Warnings) -> Response {
        let unloads = keep_alive.is_some_and(|time| match time {
            Value::Number(seconds) => seconds.as_f64() == Some(0.0),
            Value::String(time) => matches!(time.as_str(), "0" | "0s" | "0m" | "0h"),
            _ => false,
        });
        if unloads {
            warnings.add("models stay loaded while the server runs".to_owned());
        }
        let mut object = self.object(model, "");
        object["done"] = true.into();
        object["done_reason"] = if unloads { "unload" } else { "load" }.into();
        Json(object).into_response()
    }
}

/// When a request began, and when the first text of its reply came.
struct Times {
    started: Instant,
    first: OnceLock<Instant>,
}

impl Times {
    /// Of all and of the prompt, with a thought if there is one.
    fn nanoseconds(&self) -> (u64, u64) {
        let now = Instant::now();
        let first = self.first.get().copied().unwrap_or(now);
        ((now - self.started).as_nanos() as u64, (first - self.started).as_nanos() as u64)
    }
}

/// Continue a chat.
#[utoipa::path(post, path = "/api/chat", tag = "Ollama", request_body = OllamaChat,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
pub(super) async fn chat(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    AdmittedJson(request, permit): AdmittedJson<OllamaChat>,
) -> Result<Response> {
    let served = served(&app, &request.model)?;
    if request.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err(ServerError::invalid(format!("{} does not support tools", served.name), "tools"));
    }
    for message in &request.messages {
        refuse_images(message.images.as_deref(), &served.name)?;
        if message.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()) {
            return Err(ServerError::invalid(format!("{} does not support tools", served.name), "messages"));
        }
    }
    if request.messages.is_empty() {
        return Ok(Dialect::Chat.loaded(&served.name, request.keep_alive.as_ref(), &warnings));
    }
    let prompt = request.messages.into_iter().fold(Prompt::new(), |prompt, message| {
        let content = message.content.unwrap_or_default();
        match message.role {
            OllamaRole::System => prompt.system(content),
            OllamaRole::User | OllamaRole::Tool => prompt.user(Stability::AppendOnly, content),
            OllamaRole::Assistant => prompt.assistant(content),
        }
    });
    let wishes = Wishes {
        format: request.format,
        options: request.options,
        think: request.think,
        logprobs: request.logprobs,
        top_logprobs: request.top_logprobs,
    };
    let call = Call { tenant: tenant.id, ..call(&served, prompt, wishes, &warnings, &app).await? };
    reply_to(app, permit, call, served.name, Dialect::Chat, request.stream.unwrap_or(true)).await
}

/// Complete a prompt.
#[utoipa::path(post, path = "/api/generate", tag = "Ollama", request_body = OllamaGenerate,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
pub(super) async fn generate(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    AdmittedJson(request, permit): AdmittedJson<OllamaGenerate>,
) -> Result<Response> {
    let served = served(&app, &request.model)?;
    refuse_images(request.images.as_deref(), &served.name)?;
    if request.suffix.is_some_and(|suffix| !suffix.is_empty()) {
        return Err(ServerError::invalid(NO_INFILL, "suffix"));
    }
    if request.prompt.is_empty() {
        return Ok(Dialect::Generate.loaded(&served.name, request.keep_alive.as_ref(), &warnings));
    }
    let prompt = if request.raw {
        Prompt::bare(request.prompt)
    } else {
        let system = request.system.filter(|system| !system.is_empty());
        let system = system.map_or_else(Prompt::new, |system| Prompt::new().system(system));
        system.user(Stability::Volatile, request.prompt)
    };
    let wishes = Wishes {
        format: request.format,
        options: request.options,
        think: request.think,
        logprobs: request.logprobs,
        top_logprobs: request.top_logprobs,
    };
    let call = Call { tenant: tenant.id, ..call(&served, prompt, wishes, &warnings, &app).await? };
    reply_to(app, permit, call, served.name, Dialect::Generate, request.stream.unwrap_or(true)).await
}

fn refuse_images(images: Option<&[Value]>, model: &str) -> Result<()> {
    if images.is_some_and(|images| !images.is_empty()) {
        return Err(ServerError::invalid(format!("{model} reads text only: it cannot be given images"), "images"));
    }
    Ok(())
}

async fn reply_to(
    app: App,
    permit: Permit,
    call: Call,
    model: String,
    dialect: Dialect,
    streams: bool,
) -> Result<Response> {
    let times = Arc::new(Times { started: Instant::now(), first: OnceLock::new() });
    let noting = Arc::clone(&times);
    let note_first = move || {
        noting.first.get_or_init(Instant::now);
    };
    if !streams {
        let on_text = Some(OnText::new(move |_| note_first()));
        let reply = app.with_deadline(async { app.call(call.tenant, Call { on_text, ..call }).await }).await?;
        return Ok(Json(dialect.end(&model, &reply.text, &reply, &times)).into_response());
    }
    respond(Framing::Lines, |sink: Sink| async move {
        let _permit = permit;
        let (out, name) = (sink.clone(), model.clone());
        let on_text = Some(OnText::new(move |text| {
            note_first();
            out.json(&dialect.object(&name, text));
        }));
        let reply = app.with_deadline(async { app.call(call.tenant, Call { on_text, ..call }).await }).await?;
        sink.json(&dialect.end(&model, "", &reply, &times));
        Ok(())
    })
    .await
}
