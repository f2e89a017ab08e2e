//! POST /v1/chat/completions.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, Finish, Lane, OnText, Prompt, Reply, Shape, Stability, TenantId, TokenLogprob, Usage};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use utoipa::ToSchema;

use super::messages::{ChatMessage, prompt};
use super::params::{GenerationParams, OneOrMany, RawParams, refuse_if};
use super::tools::{NO_TOOL, Tool, ToolCall, ToolChoice, Toolbox};
use super::{Served, logprobs, served, usage, usage_of_all};
use crate::admission::AdmittedJson;
use crate::app::{App, fresh_id, since_1970};
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::stream::{Framing, Sink, respond};
use crate::tenant::Tenant;

/// A request for a chat completion. `top_k`, `min_p` and `repetition_penalty` are extensions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "fields that have no effect on the output are accepted")]
pub(super) struct ChatRequest {
    model: String,
    messages: Vec<ChatMessage>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    response_format: Option<ResponseFormat>,
    tools: Option<Vec<Tool>>,
    tool_choice: Option<ToolChoice>,
    parallel_tool_calls: Option<bool>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    max_completion_tokens: Option<usize>,
    max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    min_p: Option<f32>,
    seed: Option<i64>,
    stop: Option<OneOrMany>,
    n: Option<usize>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    repetition_penalty: Option<f32>,
    logit_bias: Option<Map<String, Value>>,
    user: Option<String>,
    metadata: Option<Value>,
    store: Option<bool>,
    service_tier: Option<String>,
    safety_identifier: Option<String>,
    prompt_cache_key: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
pub(super) struct StreamOptions {
    #[serde(default)]
    pub include_usage: bool,
}

/// The output format.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: JsonSchema },
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "answers keep to the schema in any case")]
struct JsonSchema {
    name: String,
    description: Option<String>,
    schema: Value,
    strict: Option<bool>,
}

/// A validated request.
struct Chat {
    id: String,
    created: u64,
    tenant: TenantId,
    served: Served,
    prompt: Prompt,
    shape: Shape,
    tools: Toolbox,
    params: GenerationParams,
    logprobs: Option<usize>,
    /// Held while a choice is submitted.
    order: tokio::sync::Mutex<()>,
    /// Prompt tokens of a text reply, counted once.
    text_tokens: OnceCell<usize>,
    /// Prompt tokens of the tool choice, counted once.
    choice_tokens: OnceCell<usize>,
}

/// One choice of the response.
struct Choice {
    text: Option<String>,
    call: Option<ToolCall>,
    reason: &'static str,
    usage: Usage,
    logprobs: Vec<TokenLogprob>,
}

/// A streamed piece of a choice.
enum Delta<'a> {
    Text(&'a str),
    Call { id: &'a str, name: &'a str },
    Arguments(&'a str),
}

/// Receives streamed pieces.
type OnDelta = Arc<dyn Fn(Delta<'_>) + Send + Sync>;

/// OpenAI's limit.
const MAX_TOP_LOGPROBS: usize = 20;

/// Continue a chat.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "OpenAI", request_body = ChatRequest,
    responses((status = 200, description = "A completion, or its chunks as server-sent events",
            content((Value = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "Refused; a prompt that does not fit is reported with both numbers"),
        (status = 429, description = "Too many requests at once")))]
pub(super) async fn complete(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    AdmittedJson(request, permit): AdmittedJson<ChatRequest>,
) -> Result<Response> {
    let (streams, options) = (request.stream.unwrap_or(false), request.stream_options);
    if options.is_some() && !streams {
        return Err(ServerError::invalid("`stream_options` needs `stream`", "stream_options"));
    }
    let chat = Arc::new(Chat::read(request, &tenant, &app)?);
    if !streams {
        let generated =
            app.with_deadline(try_join_all((0..chat.params.n).map(|choice| chat.generate(choice, None, &app)))).await?;
        return Ok(Json(chat.to_json(&generated)).into_response());
    }
    let include_usage = options.is_some_and(|options| options.include_usage);
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        app.with_deadline(chat.stream(sink, include_usage, &app)).await
    })
    .await
}

impl Chat {
    fn read(request: ChatRequest, tenant: &Tenant, app: &App) -> Result<Chat> {
        let served = served(app, &request.model)?;
        if request.messages.is_empty() {
            return Err(ServerError::invalid("a chat needs messages", "messages"));
        }
        refuse_if(request.top_logprobs.is_some_and(|top| top > MAX_TOP_LOGPROBS), "top_logprobs")?;
        let logprobs = request.logprobs.unwrap_or(false);
        if request.top_logprobs.is_some() && !logprobs {
            return Err(ServerError::invalid("`top_logprobs` needs `logprobs`", "top_logprobs"));
        }
        let shape = match request.response_format {
            None | Some(ResponseFormat::Text) => Shape::Text,
            Some(ResponseFormat::JsonObject) => Shape::Json(json!({ "type": "object" })),
            Some(ResponseFormat::JsonSchema { json_schema }) => Shape::Json(json_schema.schema),
        };
        let tools = Toolbox::read(request.tools, request.tool_choice)?;
        let params = RawParams {
            temperature: request.temperature,
            top_p: request.top_p,
            top_k: request.top_k,
            min_p: request.min_p,
            seed: request.seed,
            stop: request.stop,
            n: request.n,
            max_tokens: request.max_completion_tokens.or(request.max_tokens),
            frequency_penalty: request.frequency_penalty,
            presence_penalty: request.presence_penalty,
            repetition_penalty: request.repetition_penalty,
            logit_bias: request.logit_bias,
        };
        let params = params.read()?;
        if !params.stop.is_empty() && (shape != Shape::Text || !tools.is_empty()) {
            let message = "`stop` ends free text only; omit it, or `response_format` and `tools`";
            return Err(ServerError::invalid(message, "stop"));
        }
        Ok(Chat {
            id: fresh_id("chatcmpl")?,
            created: since_1970().as_secs(),
            tenant: tenant.id,
            served,
            prompt: prompt(&request.messages, &tools.description()),
            shape,
            tools,
            params,
            logprobs: logprobs.then(|| request.top_logprobs.unwrap_or(0)),
            order: tokio::sync::Mutex::default(),
            text_tokens: OnceCell::new(),
            choice_tokens: OnceCell::new(),
        })
    }

    /// Generates one choice.
    async fn generate(&self, choice: usize, on_delta: Option<OnDelta>, app: &App) -> Result<Choice> {
        if self.tools.is_empty() {
            return self.text(choice, on_delta, Usage::default(), app).await;
        }
        let (name, usage) = self.choose_tool(choice, app).await?;
        if name == NO_TOOL {
            return self.text(choice, on_delta, usage, app).await;
        }
        self.call_tool(name, choice, on_delta, usage, app).await
    }

    /// A text, or JSON in the requested format.
    async fn text(&self, choice: usize, on_delta: Option<OnDelta>, so_far: Usage, app: &App) -> Result<Choice> {
        let on_text = on_delta.map(|on_delta| OnText::new(move |text| on_delta(Delta::Text(text))));
        let call = Call {
            shape: self.shape.clone(),
            stop: self.params.stop.clone(),
            on_text,
            logprobs: self.logprobs,
            ..self.call("chat", self.prompt.clone(), choice)
        };
        let reply = self.send(call, &self.text_tokens, app).await?;
        let (reason, usage) = (closing_reason(reply.finish), add(so_far, reply.usage));
        Ok(Choice { text: Some(reply.text), call: None, reason, usage, logprobs: reply.logprobs })
    }

    async fn choose_tool(&self, choice: usize, app: &App) -> Result<(String, Usage)> {
        let mut names = self.tools.names();
        if names.len() == 1 {
            return Ok((names.remove(0), Usage::default()));
        }
        let prompt = self.prompt.clone().user(Stability::Volatile, self.tools.question());
        let call = Call { shape: Shape::Choice(names), ..self.call("chat.tool", prompt, choice) };
        let reply = self.send(call, &self.choice_tokens, app).await?;
        Ok((reply.text, reply.usage))
    }

    async fn call_tool(
        &self,
        name: String,
        choice: usize,
        on_delta: Option<OnDelta>,
        so_far: Usage,
        app: &App,
    ) -> Result<Choice> {
        let id = fresh_id("call")?;
        let on_text = on_delta.map(|on_delta| {
            on_delta(Delta::Call { id: &id, name: &name });
            OnText::new(move |text| on_delta(Delta::Arguments(text)))
        });
        let question = format!("\n\nWrite the arguments for `{name}` as JSON.");
        let prompt = self.prompt.clone().user(Stability::Volatile, question);
        let call = Call {
            shape: Shape::Json(self.tools.schema(&name)),
            on_text,
            ..self.call("chat.arguments", prompt, choice)
        };
        let Reply { text, usage, .. } = self.send(call, &OnceCell::new(), app).await?;
        let call = Some(ToolCall::new(id, name, text));
        Ok(Choice { text: None, call, reason: "tool_calls", usage: add(so_far, usage), logprobs: Vec::new() })
    }

    fn call(&self, step: &'static str, prompt: Prompt, choice: usize) -> Call {
        let call = self.served.call(step, prompt, 1);
        Call { sampling: self.params.sampling_for(choice), lane: Lane::Interactive, ..call }
    }

    /// Submits a call; its prompt's tokens are counted once for all choices.
    async fn send(&self, mut call: Call, token_count: &OnceCell<usize>, app: &App) -> Result<Reply> {
        let prompt_tokens = *token_count.get_or_try_init(|| app.prompt_tokens(&call)).await?;
        call.limits.max_output_tokens = self.params.output_tokens(app, &call, prompt_tokens)?;
        app.call_in_order(self.tenant, call, &self.order).await
    }

    /// The response as one object.
    fn to_json(&self, generated: &[Choice]) -> Value {
        let choice = |(index, generated): (usize, &Choice)| {
            let mut message = json!({ "role": "assistant", "content": generated.text, "refusal": null });
            if let Some(call) = &generated.call {
                message["tool_calls"] = json!([call]);
            }
            let logprobs = self.logprobs.map(|_| logprobs::of_chat(&generated.logprobs));
            json!({ "index": index, "message": message, "logprobs": logprobs, "finish_reason": generated.reason })
        };
        let choices: Vec<Value> = generated.iter().enumerate().map(choice).collect();
        let usage = usage(usage_of_all(generated.iter().map(|generated| generated.usage)));
        json!({ "id": self.id, "object": "chat.completion", "created": self.created, "model": self.served.name, "choices": choices, "usage": usage })
    }

    /// Streams the response.
    async fn stream(&self, sink: Sink, include_usage: bool, app: &App) -> Result<()> {
        let generated =
            try_join_all((0..self.params.n).map(|choice| self.stream_choice(choice, &sink, include_usage, app)))
                .await?;
        if include_usage {
            let mut last = self.chunk(json!([]), include_usage);
            last["usage"] = usage(usage_of_all(generated));
            sink.json(&last);
        }
        sink.done();
        Ok(())
    }

    async fn stream_choice(&self, index: usize, sink: &Sink, include_usage: bool, app: &App) -> Result<Usage> {
        let (frame, out) = (self.chunk(json!([]), include_usage), sink.clone());
        // The first chunk carries the role.
        let started = Mutex::new(false);
        let on_delta: OnDelta = Arc::new(move |delta| {
            let mut piece = match delta {
                Delta::Text(text) => json!({ "content": text }),
                Delta::Call { id, name } => {
                    let function = json!({ "name": name, "arguments": "" });
                    json!({ "content": null, "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
                }
                Delta::Arguments(text) => json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] }),
            };
            let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::replace(&mut *started, true) {
                piece["role"] = "assistant".into();
            }
            let mut chunk = frame.clone();
            chunk["choices"] = json!([{ "index": index, "delta": piece, "logprobs": null, "finish_reason": null }]);
            out.json(&chunk);
        });
        let generated = self.generate(index, Some(on_delta), app).await?;
        let logprobs = self.logprobs.map(|_| logprobs::of_chat(&generated.logprobs));
        let end = json!([{ "index": index, "delta": {}, "logprobs": logprobs, "finish_reason": generated.reason }]);
        sink.json(&self.chunk(end, include_usage));
        Ok(generated.usage)
    }

    fn chunk(&self, choices: Value, include_usage: bool) -> Value {
        let mut chunk = json!({ "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.served.name, "choices": choices });
        if include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

fn add(mut first: Usage, second: Usage) -> Usage {
    first += second;
    first
}

/// The finish reason in OpenAI's terms. JSON closed early was ended by the limit.
pub(crate) fn closing_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Repetition => "stop",
        Finish::Length | Finish::ClosedEarly | Finish::LoopClosed => "length",
    }
}
