//! POST /v1/chat/completions.

mod corpus;
mod format;

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, Finish, Limits, OnText, OutputFormat, Piece, Priority, Prompt, Reply, TenantId, ToolUse, Usage};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use utoipa::ToSchema;

use self::format::ResponseFormat;
use super::messages::{ChatMessage, continued, prompt};
use super::params::{GenerationParams, OneOrMany, OutputLength, RawParams};
use super::thinking::{self, Effort};
use super::tools::{self, Tool, ToolCall, ToolChoice};
use super::{logprobs, usage, usage_of_all};
use crate::admitted::AdmittedJson;
use crate::app::{App, fresh_id, since_1970};
use crate::error::{Result, ServerError};
use crate::limits::{MAX_TOP_LOGPROBS, check_top};
use crate::ollama::with_preset;
use crate::recall::{Address, find};
use crate::served::Served;
use crate::stream::{Framing, Sink, respond};
use crate::tenant::{CurrentTenant, Tenant};
use crate::warnings::Warnings;

/// A request for a chat completion. `top_k`, `min_p`, `repetition_penalty`, `chat_template_kwargs`,
/// `continue_final_message`, `add_generation_prompt` and `footnotes` are extensions.
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
    /// False allows one call in a reply.
    parallel_tool_calls: Option<bool>,
    reasoning_effort: Option<Effort>,
    /// Variables of the chat template; `enable_thinking` decides whether the model thinks.
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Whether the reply continues the last message, which is a text of the assistant.
    continue_final_message: Option<bool>,
    /// The opposite of `continue_final_message`.
    add_generation_prompt: Option<bool>,
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
    /// Whether the sources of an answer from a corpus follow its text; true by default.
    footnotes: Option<bool>,
    user: Option<String>,
    metadata: Option<Value>,
    store: Option<bool>,
    service_tier: Option<String>,
    safety_identifier: Option<String>,
    prompt_cache_key: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
pub(super) struct StreamOptions {
    /// False by default.
    include_usage: Option<bool>,
}

impl StreamOptions {
    /// Whether the last chunk has the usage.
    ///
    /// # Errors
    /// If there are options, and the reply is not streamed.
    pub fn include_usage(options: Option<StreamOptions>, streams: bool) -> Result<bool> {
        if options.is_some() && !streams {
            return Err(ServerError::invalid("`stream_options` needs `stream`", "stream_options"));
        }
        Ok(options.and_then(|options| options.include_usage).unwrap_or(false))
    }
}

/// A validated request.
struct Chat {
    id: String,
    created: u64,
    tenant: TenantId,
    served: Served,
    prompt: Prompt,
    output_format: OutputFormat,
    tools: Option<ToolUse>,
    params: GenerationParams,
    thinking_tokens: usize,
    logprobs: Option<usize>,
    /// What the ids of tool calls begin with.
    call_id: String,
    /// Held while a choice is submitted.
    order: tokio::sync::Mutex<()>,
    /// The limits of every choice, for which the prompt is counted once.
    limits: OnceCell<Limits>,
    /// The number of choices that have begun in a stream.
    begun: Mutex<usize>,
}

/// What was streamed of a choice.
#[derive(Default)]
struct Streamed {
    tool_calls: usize,
    logprobs: usize,
}

/// Continue a chat.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "OpenAI", request_body = ChatRequest,
    responses((status = 200, description = "A completion, or its chunks as server-sent events",
            content((Value = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "Refused; a prompt that does not fit is reported with both numbers"),
        (status = 429, description = "Too many requests at once")))]
pub(super) async fn complete(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    address: Address,
    AdmittedJson(request, permit): AdmittedJson<ChatRequest>,
) -> Result<Response> {
    let streams = request.stream.unwrap_or(false);
    let include_usage = StreamOptions::include_usage(request.stream_options, streams)?;
    if request.store == Some(true) {
        warnings.add("`store` has no effect: chat completions are not kept".to_owned());
    }
    if let Some(model) = find(&app, &tenant, &request.model).await? {
        return corpus::complete(app, tenant, model, address, request, permit, &warnings).await;
    }
    let app = app.serving(&request.model).await?;
    let chat = Arc::new(Chat::read(request, &tenant, &app, &warnings)?);
    if !streams {
        let generated =
            app.with_deadline(try_join_all((0..chat.params.n).map(|choice| chat.generate(choice, None, &app)))).await?;
        return Ok(Json(chat.to_json(&generated)).into_response());
    }
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        app.with_deadline(chat.stream(sink, include_usage, &app)).await
    })
    .await
}

impl Chat {
    fn read(request: ChatRequest, tenant: &Tenant, app: &App, warnings: &Warnings) -> Result<Chat> {
        let served = app.served(&request.model)?;
        if request.messages.is_empty() {
            return Err(ServerError::invalid("a chat needs messages", "messages"));
        }
        check_top(request.top_logprobs, MAX_TOP_LOGPROBS, "top_logprobs")?;
        let logprobs = request.logprobs.unwrap_or(false);
        if request.top_logprobs.is_some() && !logprobs {
            return Err(ServerError::invalid("`top_logprobs` needs `logprobs`", "top_logprobs"));
        }
        let output_format = request.response_format.map_or(OutputFormat::Text, ResponseFormat::output_format);
        let parallel = request.parallel_tool_calls.unwrap_or(true);
        let (offered, tools) = tools::read(request.tools, request.tool_choice, parallel, warnings)?;
        let variables = request.chat_template_kwargs.unwrap_or_default();
        let thinking_tokens = thinking::budget(request.reasoning_effort, &variables)?;
        let params = RawParams {
            temperature: request.temperature,
            top_p: request.top_p,
            top_k: request.top_k,
            min_p: request.min_p,
            seed: request.seed,
            stop: request.stop,
            n: request.n,
            max_tokens: request.max_completion_tokens.or(request.max_tokens),
            max_tokens_field: request.max_completion_tokens.map(|_| "max_completion_tokens"),
            frequency_penalty: request.frequency_penalty,
            presence_penalty: request.presence_penalty,
            repetition_penalty: request.repetition_penalty,
            logit_bias: request.logit_bias,
            ..RawParams::default()
        };
        let params = with_preset(app, params, &output_format)?.read()?;
        if !params.stop.is_empty() && output_format != OutputFormat::Text {
            let message = "`stop` ends free text only; omit it or `response_format`";
            return Err(ServerError::invalid(message, "stop"));
        }
        let is_free_text = output_format == OutputFormat::Text && thinking_tokens == 0;
        let wishes = (request.continue_final_message, request.add_generation_prompt);
        let prompt = continued(prompt(&request.messages, offered, warnings)?, wishes, is_free_text)?;
        Ok(Chat {
            id: fresh_id("chatcmpl")?,
            created: since_1970().as_secs(),
            tenant: tenant.id,
            served,
            prompt: prompt.or_system(&app.preset.system).with_variables(variables),
            output_format,
            tools,
            params,
            thinking_tokens,
            logprobs: logprobs.then(|| request.top_logprobs.unwrap_or(0)),
            call_id: fresh_id("call")?,
            order: tokio::sync::Mutex::default(),
            limits: OnceCell::new(),
            begun: Mutex::default(),
        })
    }

    /// Generates one choice. The prompt is copied for it once it is known to fit.
    async fn generate(&self, choice: usize, on_text: Option<OnText>, app: &App) -> Result<Reply> {
        let limits = *self.limits.get_or_try_init(|| self.counted_limits(app)).await?;
        let sampling = self.params.sampling_for(choice);
        let call = || Call { limits, on_text, sampling, ..self.call() };
        app.call_in_order(self.tenant, call, &self.order).await
    }

    /// The call of a choice, without what differs between choices.
    fn call(&self) -> Call {
        let mut call = Call {
            output_format: self.output_format.clone(),
            stop: self.params.stop.clone(),
            logprobs: self.logprobs,
            tools: self.tools.clone(),
            priority: Priority::Interactive,
            ..self.served.call("chat", self.prompt.clone(), 1)
        };
        call.limits.thinking_tokens = self.thinking_tokens;
        call
    }

    async fn counted_limits(&self, app: &App) -> Result<Limits> {
        let call = self.call();
        let prompt_tokens = app.prompt_tokens(&call).await?;
        let asked = self.params.max_output_tokens.map_or(OutputLength::Default, OutputLength::Tokens);
        thinking::limits(app, &call, prompt_tokens, asked, self.thinking_tokens)
    }

    /// The id of a tool call.
    fn id_of_call(&self, choice: usize, number: usize) -> String {
        format!("{}-{choice}-{number}", self.call_id)
    }

    /// The response as one object.
    fn to_json(&self, replies: &[Reply]) -> Value {
        let choice = |(index, reply): (usize, &Reply)| {
            let is_empty = reply.text.is_empty() && !reply.tool_calls.is_empty();
            let text = (!is_empty).then_some(&reply.text);
            let mut message = json!({ "role": "assistant", "content": text, "refusal": null });
            if let Some(thought) = &reply.thought {
                message["reasoning_content"] = thought.as_str().into();
            }
            if !reply.tool_calls.is_empty() {
                let calls = reply.tool_calls.iter().enumerate();
                let calls = calls.map(|(number, call)| ToolCall::new(self.id_of_call(index, number), call));
                message["tool_calls"] = json!(calls.collect::<Vec<_>>());
            }
            let logprobs = self.logprobs.map(|_| logprobs::of_chat(&reply.logprobs));
            json!({ "index": index, "message": message, "logprobs": logprobs, "finish_reason": finish_reason(reply) })
        };
        let choices: Vec<Value> = replies.iter().enumerate().map(choice).collect();
        let usage = usage(usage_of_all(replies.iter().map(|reply| reply.usage)));
        json!({ "id": self.id, "object": "chat.completion", "created": self.created, "model": self.served.name, "choices": choices, "usage": usage })
    }

    /// Streams the response.
    async fn stream(self: &Arc<Self>, sink: Sink, include_usage: bool, app: &App) -> Result<()> {
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

    async fn stream_choice(
        self: &Arc<Self>,
        index: usize,
        sink: &Sink,
        include_usage: bool,
        app: &App,
    ) -> Result<Usage> {
        let streamed = Arc::<Mutex<Streamed>>::default();
        let (chat, out, state) = (Arc::clone(self), sink.clone(), Arc::clone(&streamed));
        let on_text = OnText::pieces(move |piece| {
            let mut streamed = state.lock().unwrap_or_else(PoisonError::into_inner);
            let choice = chat.delta(index, piece, &mut streamed);
            chat.send(index, choice, &out, include_usage);
        });
        let reply = self.generate(index, Some(on_text), app).await?;
        let sent = streamed.lock().unwrap_or_else(PoisonError::into_inner).logprobs;
        let rest = reply.logprobs.get(sent..).filter(|rest| !rest.is_empty());
        let logprobs = rest.filter(|_| self.logprobs.is_some()).map(logprobs::of_chat);
        let end = json!({ "index": index, "delta": {}, "logprobs": logprobs, "finish_reason": finish_reason(&reply) });
        self.send(index, end, sink, include_usage);
        Ok(reply.usage)
    }

    /// The choice of a chunk with a piece of a reply.
    fn delta(&self, index: usize, piece: Piece<'_>, streamed: &mut Streamed) -> Value {
        let mut of_tokens = Value::Null;
        let delta = match piece {
            Piece::Thought(text) => json!({ "reasoning_content": text }),
            Piece::Text(text, tokens) => {
                streamed.logprobs += tokens.len();
                if self.logprobs.is_some() {
                    of_tokens = logprobs::of_chat(tokens);
                }
                json!({ "content": text })
            }
            Piece::ToolCall(name) => {
                let number = streamed.tool_calls;
                streamed.tool_calls += 1;
                let function = json!({ "name": name, "arguments": "" });
                let id = self.id_of_call(index, number);
                json!({ "tool_calls": [{ "index": number, "id": id, "type": "function", "function": function }] })
            }
            Piece::Arguments(text) => {
                let number = streamed.tool_calls.saturating_sub(1);
                json!({ "tool_calls": [{ "index": number, "function": { "arguments": text } }] })
            }
        };
        json!({ "index": index, "delta": delta, "logprobs": of_tokens, "finish_reason": null })
    }

    /// Sends the chunk of a choice, whose first one has the role. Choices with lower numbers that have sent nothing yet
    /// begin before it: clients find a choice by its number among those that have come.
    fn send(&self, index: usize, mut choice: Value, sink: &Sink, include_usage: bool) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        for earlier in *begun..index {
            let delta = json!({ "role": "assistant", "content": "" });
            let opening = json!({ "index": earlier, "delta": delta, "logprobs": null, "finish_reason": null });
            sink.json(&self.chunk(json!([opening]), include_usage));
        }
        if *begun <= index {
            *begun = index + 1;
            choice["delta"]["role"] = "assistant".into();
        }
        sink.json(&self.chunk(json!([choice]), include_usage));
    }

    fn chunk(&self, choices: Value, include_usage: bool) -> Value {
        let mut chunk = json!({ "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.served.name, "choices": choices });
        if include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

/// The finish reason of a reply. A call of a tool that was cut off was ended by the limit.
fn finish_reason(reply: &Reply) -> &'static str {
    let calls = !reply.tool_calls.is_empty() && !reply.finish.is_cut();
    if calls { "tool_calls" } else { closing_reason(reply.finish) }
}

/// The finish reason in OpenAI's terms. JSON closed early was ended by the limit.
pub(crate) fn closing_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Repetition => "stop",
        Finish::Length | Finish::ClosedEarly | Finish::LoopClosed => "length",
    }
}
