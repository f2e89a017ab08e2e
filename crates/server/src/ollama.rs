//! Ollama's API for loaded models: chat, generate, embed, tags, version.
//!
//! Unknown options are ignored, as by Ollama.

use std::time::Instant;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, Lane, OnText, Prompt, Reply, Sampling, Shape, Stability, Wanted};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admission::{AdmittedJson, Permit};
use crate::app::{App, random};
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::openai::params::{OneOrMany, OutputLength, in_range, output_limit, penalties, refuse_if};
use crate::openai::{Served, closing_reason, embedder, names, served};
use crate::stream::{Framing, Sink, respond};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(chat))
        .routes(routes!(generate))
        .routes(routes!(embed))
        .routes(routes!(tags))
        .routes(routes!(version))
}

#[derive(Debug, Deserialize, ToSchema)]
struct OllamaChat {
    model: String,
    #[serde(default)]
    messages: Vec<OllamaMessage>,
    /// Refused unless empty.
    tools: Option<Vec<Value>>,
    stream: Option<bool>,
    /// `json` or a JSON schema.
    format: Option<Value>,
    #[serde(default)]
    options: Options,
}

#[derive(Debug, Deserialize, ToSchema)]
struct OllamaMessage {
    role: OllamaRole,
    #[serde(default)]
    content: String,
    /// Refused unless empty.
    images: Option<Vec<Value>>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OllamaRole {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Deserialize, ToSchema)]
struct OllamaGenerate {
    model: String,
    #[serde(default)]
    prompt: String,
    system: Option<String>,
    /// Refused unless empty.
    images: Option<Vec<Value>>,
    /// True to pass the prompt to the model without a chat template.
    #[serde(default)]
    raw: bool,
    stream: Option<bool>,
    /// `json` or a JSON schema.
    format: Option<Value>,
    #[serde(default)]
    options: Options,
}

/// The options that are supported.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct Options {
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    min_p: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    /// Of all tokens of the prompt and the answer; 1 unless given.
    repeat_penalty: Option<f32>,
    seed: Option<i64>,
    /// Maximum output tokens; a negative value allows as many as fit.
    num_predict: Option<i64>,
    stop: Option<OneOrMany>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct OllamaEmbed {
    model: String,
    input: OneOrMany,
}

/// Ollama's defaults.
const TEMPERATURE: f32 = 0.8;
const TOP_P: f32 = 0.9;
const TOP_K: usize = 40;

/// Response format: chat and generate differ only in this.
#[derive(Debug, Clone, Copy)]
enum Dialect {
    Chat,
    Generate,
}

impl Dialect {
    fn object(self, model: &str, text: &str) -> Value {
        let created = rfc3339(crate::app::since_1970().as_secs());
        match self {
            Dialect::Chat => {
                json!({ "model": model, "created_at": created, "message": { "role": "assistant", "content": text }, "done": false })
            }
            Dialect::Generate => json!({ "model": model, "created_at": created, "response": text, "done": false }),
        }
    }

    /// The final object, with token counts and times.
    fn end(self, model: &str, text: &str, reply: &Reply, started: Instant) -> Value {
        let mut object = self.object(model, text);
        let nanoseconds = started.elapsed().as_nanos() as u64;
        object["done"] = true.into();
        object["done_reason"] = closing_reason(reply.finish).into();
        object["total_duration"] = nanoseconds.into();
        object["load_duration"] = 0.into();
        object["prompt_eval_count"] = reply.usage.prompt_tokens.into();
        object["eval_count"] = reply.usage.output_tokens.into();
        object["eval_duration"] = nanoseconds.into();
        object
    }
}

/// Continue a chat.
#[utoipa::path(post, path = "/api/chat", tag = "Ollama", request_body = OllamaChat,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
async fn chat(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    AdmittedJson(request, permit): AdmittedJson<OllamaChat>,
) -> Result<Response> {
    refuse_if(request.tools.is_some_and(|tools| !tools.is_empty()), "tools")?;
    let has_images = |message: &OllamaMessage| message.images.as_ref().is_some_and(|images| !images.is_empty());
    refuse_if(request.messages.iter().any(has_images), "images")?;
    let prompt = request.messages.into_iter().fold(Prompt::new(), |prompt, message| match message.role {
        OllamaRole::System => prompt.system(message.content),
        OllamaRole::User | OllamaRole::Tool => prompt.user(Stability::AppendOnly, message.content),
        OllamaRole::Assistant => prompt.assistant(message.content),
    });
    if prompt.segments().is_empty() {
        return Err(ServerError::invalid("a chat needs messages", "messages"));
    }
    let served = served(&app, &request.model)?;
    let call = call(&served, prompt, request.format, request.options, &app).await?;
    let call = Call { tenant: tenant.id, ..call };
    reply_to(app, permit, call, served.name, Dialect::Chat, request.stream.unwrap_or(true)).await
}

/// Complete a prompt.
#[utoipa::path(post, path = "/api/generate", tag = "Ollama", request_body = OllamaGenerate,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
async fn generate(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    AdmittedJson(request, permit): AdmittedJson<OllamaGenerate>,
) -> Result<Response> {
    refuse_if(request.images.is_some_and(|images| !images.is_empty()), "images")?;
    if request.prompt.is_empty() {
        return Err(ServerError::invalid("the prompt is empty", "prompt"));
    }
    let prompt = if request.raw {
        Prompt::bare(request.prompt)
    } else {
        let system = request.system.map_or_else(Prompt::new, |system| Prompt::new().system(system));
        system.user(Stability::Volatile, request.prompt)
    };
    let served = served(&app, &request.model)?;
    let call = call(&served, prompt, request.format, request.options, &app).await?;
    let call = Call { tenant: tenant.id, ..call };
    reply_to(app, permit, call, served.name, Dialect::Generate, request.stream.unwrap_or(true)).await
}

async fn call(served: &Served, prompt: Prompt, format: Option<Value>, options: Options, app: &App) -> Result<Call> {
    let shape = match format {
        None | Some(Value::Null) => Shape::Text,
        Some(Value::String(name)) if name.is_empty() => Shape::Text,
        Some(Value::String(name)) if name == "json" => Shape::Json(json!({ "type": "object" })),
        Some(schema @ Value::Object(_)) => Shape::Json(schema),
        Some(_) => return Err(ServerError::invalid("`format` is `json` or a JSON schema", "format")),
    };
    let penalties = penalties(
        (options.frequency_penalty, "options.frequency_penalty"),
        (options.presence_penalty, "options.presence_penalty"),
        (options.repeat_penalty, "options.repeat_penalty"),
    )?;
    let sampling = Sampling {
        temperature: in_range(options.temperature, TEMPERATURE, 0.0..=2.0, "options.temperature")?,
        top_p: in_range(options.top_p, TOP_P, 0.0..=1.0, "options.top_p")?,
        top_k: options.top_k.unwrap_or(TOP_K),
        min_p: in_range(options.min_p, 0.0, 0.0..=1.0, "options.min_p")?,
        seed: options.seed.map_or_else(random, |seed| Ok(seed.cast_unsigned()))?,
        ..penalties
    };
    let stop = options.stop.map_or_else(Vec::new, OneOrMany::into_vec);
    if !stop.is_empty() && shape != Shape::Text {
        return Err(ServerError::invalid("`stop` ends free text only: omit it or `format`", "options.stop"));
    }
    let asked = match options.num_predict.map(usize::try_from) {
        None => OutputLength::Default,
        Some(Err(_)) => OutputLength::Rest,
        Some(Ok(0)) => return Err(ServerError::invalid("num_predict must not be 0", "options.num_predict")),
        Some(Ok(tokens)) => OutputLength::Tokens(tokens),
    };
    let mut call = Call { shape, sampling, stop, lane: Lane::Interactive, ..served.call("ollama", prompt, 1) };
    let prompt_tokens = app.prompt_tokens(&call).await?;
    call.limits.max_output_tokens = output_limit(app, &call, prompt_tokens, asked)?;
    Ok(call)
}

async fn reply_to(
    app: App,
    permit: Permit,
    call: Call,
    model: String,
    dialect: Dialect,
    streams: bool,
) -> Result<Response> {
    let started = Instant::now();
    if !streams {
        let reply = app.with_deadline(async { app.call(call.tenant, call).await }).await?;
        return Ok(Json(dialect.end(&model, &reply.text, &reply, started)).into_response());
    }
    respond(Framing::Lines, |sink: Sink| async move {
        let _permit = permit;
        let (out, name) = (sink.clone(), model.clone());
        let on_text = OnText::new(move |text| out.json(&dialect.object(&name, text)));
        let reply =
            app.with_deadline(async { app.call(call.tenant, Call { on_text: Some(on_text), ..call }).await }).await?;
        sink.json(&dialect.end(&model, "", &reply, started));
        Ok(())
    })
    .await
}

/// Embed texts.
#[utoipa::path(post, path = "/api/embed", tag = "Ollama", request_body = OllamaEmbed, responses((status = 200, body = Value)))]
async fn embed(
    State(app): State<App>,
    AdmittedJson(request, _permit): AdmittedJson<OllamaEmbed>,
) -> Result<Json<Value>> {
    embedder(&app, &request.model)?;
    let (started, texts) = (Instant::now(), request.input.into_vec());
    let (texts, counts): (Vec<String>, Vec<usize>) = app.with_token_counts(texts).await?.into_iter().unzip();
    let tokens: usize = counts.into_iter().sum();
    let embeddings = app.with_deadline(app.represent(texts, Wanted::Dense)).await?;
    let vectors: Vec<Vec<f32>> = embeddings.into_iter().map(|embedding| embedding.dense).collect();
    let nanoseconds = started.elapsed().as_nanos() as u64;
    Ok(Json(
        json!({ "model": app.embedder.name(), "embeddings": vectors, "total_duration": nanoseconds, "load_duration": 0, "prompt_eval_count": tokens }),
    ))
}

/// List the loaded models.
#[utoipa::path(get, path = "/api/tags", tag = "Ollama", responses((status = 200, body = Value)))]
async fn tags(State(app): State<App>) -> Json<Value> {
    let modified = rfc3339(app.started_seconds);
    let model = |name: &String| json!({ "name": name, "model": name, "modified_at": modified, "size": 0, "digest": "", "details": {} });
    Json(json!({ "models": names(&app).iter().map(model).collect::<Vec<_>>() }))
}

/// The version of this server.
#[utoipa::path(get, path = "/api/version", tag = "Ollama", responses((status = 200, body = Value)))]
async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION") }))
}

/// A time of the form 2026-01-31T12:00:00Z (days to dates after Howard Hinnant's `civil_from_days`).
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn times_read_as_people_write_them() {
        let check = |seconds, want: &str| assert_eq!(rfc3339(seconds), want);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_798_761_599, "2026-12-31T23:59:59Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }
}
