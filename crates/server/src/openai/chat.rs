//! POST /v1/chat/completions.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, Finish, Lane, OnText, Prompt, Reply, Role, Shape, Stability, TenantId, TokenLogprob, Usage};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use utoipa::ToSchema;

use super::knobs::{Knobs, OneOrMany, Typed, unsupported};
use super::messages::{ChatMessage, prompt};
use super::tools::{NO_TOOL, Tool, ToolCall, ToolChoice, Toolbox};
use super::{probable, role, usage, usage_of_all};
use crate::app::{App, fresh_id, since_1970};
use crate::corpora::Whose;
use crate::error::{Result, ServerError};
use crate::gate::Admitted;
use crate::stream::{Framing, Sink, respond};
use crate::tenant::Tenant;

/// A request for a chat completion. `top_k` and `min_p` are extensions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "fields that OpenAI only files away are accepted")]
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
    model: String,
    role: Role,
    prompt: Prompt,
    shape: Shape,
    tools: Toolbox,
    knobs: Knobs,
    logprobs: Option<usize>,
    /// Held while a choice is submitted.
    turn: tokio::sync::Mutex<()>,
    /// Prompt tokens of a text reply, counted once.
    text_tokens: OnceCell<usize>,
    /// Prompt tokens of the tool choice, counted once.
    choice_tokens: OnceCell<usize>,
}

/// One choice of the response.
struct Said {
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
const MOST_TOP_LOGPROBS: usize = 20;

/// Continue a chat.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "OpenAI", request_body = ChatRequest,
    responses((status = 200, description = "A completion, or its chunks as server-sent events",
            content((Value = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "Refused; a prompt that does not fit is told with both numbers"),
        (status = 429, description = "Too many requests at once")))]
pub(super) async fn complete(
    State(app): State<App>,
    Extension(tenant): Whose,
    Admitted(request, place): Admitted<ChatRequest>,
) -> Result<Response> {
    let (streams, options) = (request.stream.unwrap_or(false), request.stream_options);
    if options.is_some() && !streams {
        return Err(ServerError::invalid("`stream_options` needs `stream`", "stream_options"));
    }
    let chat = Arc::new(Chat::read(request, &tenant, &app)?);
    if !streams {
        let said = app.in_time(try_join_all((0..chat.knobs.n).map(|choice| chat.say(choice, None, &app)))).await?;
        return Ok(Json(chat.whole(&said)).into_response());
    }
    let include_usage = options.is_some_and(|options| options.include_usage);
    respond(Framing::Events, |sink| async move {
        let _place = place;
        app.in_time(chat.stream(sink, include_usage, &app)).await
    })
    .await
}

impl Chat {
    fn read(request: ChatRequest, tenant: &Tenant, app: &App) -> Result<Chat> {
        let role = role(app, &request.model)?;
        if request.messages.is_empty() {
            return Err(ServerError::invalid("a chat needs messages", "messages"));
        }
        unsupported(request.top_logprobs.is_some_and(|top| top > MOST_TOP_LOGPROBS), "top_logprobs")?;
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
        let knobs = Typed {
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
            logit_bias: request.logit_bias,
        };
        let knobs = knobs.read()?;
        if !knobs.stop.is_empty() && (shape != Shape::Text || !tools.is_empty()) {
            let message = "`stop` ends free text only; leave it out, or `response_format` and `tools`";
            return Err(ServerError::invalid(message, "stop"));
        }
        Ok(Chat {
            id: fresh_id("chatcmpl")?,
            created: since_1970().as_secs(),
            tenant: tenant.id,
            model: app.caller.model(role).to_owned(),
            role,
            prompt: prompt(&request.messages, &tools.description()),
            shape,
            tools,
            knobs,
            logprobs: logprobs.then(|| request.top_logprobs.unwrap_or(0)),
            turn: tokio::sync::Mutex::default(),
            text_tokens: OnceCell::new(),
            choice_tokens: OnceCell::new(),
        })
    }

    /// Generates one choice.
    async fn say(&self, choice: usize, on_delta: Option<OnDelta>, app: &App) -> Result<Said> {
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
    async fn text(&self, choice: usize, on_delta: Option<OnDelta>, so_far: Usage, app: &App) -> Result<Said> {
        let on_text = on_delta.map(|on_delta| OnText::new(move |text| on_delta(Delta::Text(text))));
        let call = Call {
            shape: self.shape.clone(),
            stop: self.knobs.stop.clone(),
            on_text,
            logprobs: self.logprobs,
            ..self.call("chat", self.prompt.clone(), choice)
        };
        let reply = self.send(call, &self.text_tokens, app).await?;
        let (reason, usage) = (closing_reason(reply.finish), sum(so_far, reply.usage));
        Ok(Said { text: Some(reply.text), call: None, reason, usage, logprobs: reply.logprobs })
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
    ) -> Result<Said> {
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
        Ok(Said { text: None, call, reason: "tool_calls", usage: sum(so_far, usage), logprobs: Vec::new() })
    }

    fn call(&self, step: &'static str, prompt: Prompt, choice: usize) -> Call {
        let call = Call::new(self.role, step, prompt, 1);
        Call { sampling: self.knobs.draw(choice), lane: Lane::Interactive, ..call }
    }

    /// Submits a call; its prompt's tokens are counted once for all choices.
    async fn send(&self, mut call: Call, counted: &OnceCell<usize>, app: &App) -> Result<Reply> {
        let prompt_tokens = *counted.get_or_try_init(|| app.prompt_tokens(&call)).await?;
        call.limits.max_output_tokens = self.knobs.output_tokens(app, &call, prompt_tokens)?;
        app.call_in_turn(self.tenant, call, &self.turn).await
    }

    /// The response as one object.
    fn whole(&self, said: &[Said]) -> Value {
        let choice = |(index, said): (usize, &Said)| {
            let mut message = json!({ "role": "assistant", "content": said.text, "refusal": null });
            if let Some(call) = &said.call {
                message["tool_calls"] = json!([call]);
            }
            let logprobs = self.logprobs.map(|_| probable::of_chat(&said.logprobs));
            json!({ "index": index, "message": message, "logprobs": logprobs, "finish_reason": said.reason })
        };
        let choices: Vec<Value> = said.iter().enumerate().map(choice).collect();
        let usage = usage(usage_of_all(said.iter().map(|said| said.usage)));
        json!({ "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model, "choices": choices, "usage": usage })
    }

    /// Streams the response.
    async fn stream(&self, sink: Sink, include_usage: bool, app: &App) -> Result<()> {
        let said =
            try_join_all((0..self.knobs.n).map(|choice| self.stream_choice(choice, &sink, include_usage, app))).await?;
        if include_usage {
            let mut last = self.chunk(json!([]), include_usage);
            last["usage"] = usage(usage_of_all(said));
            sink.json(&last);
        }
        sink.done();
        Ok(())
    }

    async fn stream_choice(&self, index: usize, sink: &Sink, include_usage: bool, app: &App) -> Result<Usage> {
        let (frame, out) = (self.chunk(json!([]), include_usage), sink.clone());
        // The first chunk carries the role.
        let begun = Mutex::new(false);
        let on_delta: OnDelta = Arc::new(move |delta| {
            let mut piece = match delta {
                Delta::Text(text) => json!({ "content": text }),
                Delta::Call { id, name } => {
                    let function = json!({ "name": name, "arguments": "" });
                    json!({ "content": null, "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
                }
                Delta::Arguments(text) => json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] }),
            };
            let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::replace(&mut *begun, true) {
                piece["role"] = "assistant".into();
            }
            let mut chunk = frame.clone();
            chunk["choices"] = json!([{ "index": index, "delta": piece, "logprobs": null, "finish_reason": null }]);
            out.json(&chunk);
        });
        let said = self.say(index, Some(on_delta), app).await?;
        let logprobs = self.logprobs.map(|_| probable::of_chat(&said.logprobs));
        let end = json!([{ "index": index, "delta": {}, "logprobs": logprobs, "finish_reason": said.reason }]);
        sink.json(&self.chunk(end, include_usage));
        Ok(said.usage)
    }

    fn chunk(&self, choices: Value, include_usage: bool) -> Value {
        let mut chunk = json!({ "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model, "choices": choices });
        if include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

fn sum(mut first: Usage, second: Usage) -> Usage {
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
