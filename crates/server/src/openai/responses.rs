//! POST /v1/responses: OpenAI's newer API, limited to one input and its output.
//!
//! Responses are not stored, so no later request can refer to one; tools are supported by chat completions only.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, Finish, OnText, OutputFormat, Priority, Prompt, Reply, Role, TenantId, Usage};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::messages::turn;
use super::params::{GenerationParams, RawParams, refuse_if};
use super::{Served, served};
use crate::admission::AdmittedJson;
use crate::app::{App, fresh_id, since_1970};
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::stream::{Framing, Sink, respond};
use crate::tenant::Tenant;

/// A request for a response.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "fields that have no effect on the output are accepted")]
pub(super) struct ResponseRequest {
    model: String,
    input: ResponseInput,
    /// The system message.
    instructions: Option<String>,
    text: Option<ResponseTextOptions>,
    stream: Option<bool>,
    max_output_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    previous_response_id: Option<String>,
    conversation: Option<Value>,
    background: Option<bool>,
    reasoning: Option<Value>,
    /// Only `disabled`: input is never truncated.
    truncation: Option<String>,
    include: Option<Vec<String>>,
    metadata: Option<Value>,
    store: Option<bool>,
    user: Option<String>,
    service_tier: Option<String>,
    safety_identifier: Option<String>,
    prompt_cache_key: Option<String>,
}

/// A text, or messages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of messages")]
enum ResponseInput {
    Text(String),
    Messages(Vec<ResponseMessage>),
}

/// A message; those of earlier responses can be sent back unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "what answers carry besides is accepted")]
struct ResponseMessage {
    role: ResponseRole,
    content: ResponseContent,
    #[serde(rename = "type")]
    kind: Option<ResponseItemKind>,
    id: Option<String>,
    status: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ResponseRole {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ResponseItemKind {
    Message,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of {\"type\": \"input_text\", \"text\": ...}")]
enum ResponseContent {
    Text(String),
    Parts(Vec<ResponsePart>),
}

/// A part of a message's content. Images and files are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsePart {
    InputText { text: String },
    OutputText { text: String },
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResponseTextOptions {
    format: Option<ResponseTextFormat>,
}

/// The output format.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(dead_code, reason = "answers keep to the schema in any case")]
enum ResponseTextFormat {
    Text,
    JsonObject,
    JsonSchema { name: String, description: Option<String>, schema: Value, strict: Option<bool> },
}

/// A validated request.
struct Generation {
    id: String,
    message_id: String,
    created: u64,
    tenant: TenantId,
    served: Served,
    instructions: Option<String>,
    metadata: Value,
    format: Value,
    prompt: Prompt,
    output_format: OutputFormat,
    params: GenerationParams,
}

/// Create a response to a text or to messages.
#[utoipa::path(post, path = "/v1/responses", tag = "OpenAI", request_body = ResponseRequest,
    responses((status = 200, body = Value, description = "A response, or its events as server-sent events"),
        (status = 400, description = "Refused; a prompt that does not fit is reported with both numbers"),
        (status = 429, description = "Too many requests at once")))]
pub(super) async fn respond_to(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    AdmittedJson(request, permit): AdmittedJson<ResponseRequest>,
) -> Result<Response> {
    let streams = request.stream.unwrap_or(false);
    let asked = Generation::read(request, &tenant, &app)?;
    if !streams {
        let reply = app.with_deadline(asked.generate(None, &app)).await?;
        return Ok(Json(asked.finished(&reply)).into_response());
    }
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        app.with_deadline(asked.stream(&sink, &app)).await
    })
    .await
}

impl Generation {
    fn read(request: ResponseRequest, tenant: &Tenant, app: &App) -> Result<Generation> {
        let served = served(app, &request.model)?;
        refuse_if(request.tools.is_some_and(|tools| !tools.is_empty()), "tools")?;
        refuse_if(request.previous_response_id.is_some(), "previous_response_id")?;
        refuse_if(request.conversation.is_some(), "conversation")?;
        refuse_if(request.background.unwrap_or(false), "background")?;
        refuse_if(request.truncation.is_some_and(|how| how != "disabled"), "truncation")?;
        refuse_if(request.reasoning.is_some(), "reasoning")?;
        refuse_if(request.include.is_some_and(|more| !more.is_empty()), "include")?;
        let (output_format, format) = output_format(request.text.and_then(|text| text.format));
        let typed = RawParams {
            temperature: request.temperature,
            top_p: request.top_p,
            max_tokens: request.max_output_tokens,
            ..RawParams::default()
        };
        Ok(Generation {
            id: fresh_id("resp")?,
            message_id: fresh_id("msg")?,
            created: since_1970().as_secs(),
            tenant: tenant.id,
            served,
            prompt: prompt(request.instructions.as_deref(), request.input)?,
            instructions: request.instructions,
            metadata: request.metadata.unwrap_or_else(|| json!({})),
            format,
            output_format,
            params: typed.read()?,
        })
    }

    async fn generate(&self, on_text: Option<OnText>, app: &App) -> Result<Reply> {
        let call = self.served.call("response", self.prompt.clone(), 1);
        let output_format = self.output_format.clone();
        let mut call = Call {
            sampling: self.params.sampling_for(0),
            priority: Priority::Interactive,
            output_format,
            on_text,
            ..call
        };
        let prompt_tokens = app.prompt_tokens(&call).await?;
        call.limits.max_output_tokens = self.params.output_tokens(app, &call, prompt_tokens)?;
        app.call(self.tenant, call).await
    }

    async fn stream(&self, sink: &Sink, app: &App) -> Result<()> {
        let events = Arc::new(Events { sink: sink.clone(), sent: Mutex::default(), opening: self.opening() });
        let frame = self.with_position(json!({ "logprobs": [] }));
        let on_text = {
            let events = Arc::clone(&events);
            OnText::new(move |text| {
                let mut delta = frame.clone();
                delta["delta"] = text.into();
                events.send("response.output_text.delta", delta);
            })
        };
        let reply = self.generate(Some(on_text), app).await?;
        let response = self.finished(&reply);
        events.send("response.output_text.done", self.with_position(json!({ "text": reply.text, "logprobs": [] })));
        events.send("response.content_part.done", self.with_position(json!({ "part": part(&reply.text) })));
        events.send("response.output_item.done", json!({ "output_index": 0, "item": response["output"][0] }));
        let name = if response["status"] == "completed" { "response.completed" } else { "response.incomplete" };
        events.send(name, json!({ "response": response }));
        Ok(())
    }

    /// The events that come before any text.
    fn opening(&self) -> [(&'static str, Value); 4] {
        let started = json!({ "response": self.object("in_progress", json!([]), Value::Null) });
        let item = self.message("in_progress", json!([]));
        [
            ("response.created", started.clone()),
            ("response.in_progress", started),
            ("response.output_item.added", json!({ "output_index": 0, "item": item })),
            ("response.content_part.added", self.with_position(json!({ "part": part("") }))),
        ]
    }

    /// An event with the position of the text in the response.
    fn with_position(&self, mut event: Value) -> Value {
        event["item_id"] = self.message_id.as_str().into();
        event["output_index"] = 0.into();
        event["content_index"] = 0.into();
        event
    }

    /// The finished response.
    fn finished(&self, reply: &Reply) -> Value {
        let is_complete = matches!(reply.finish, Finish::Stop | Finish::Repetition);
        let status = if is_complete { "completed" } else { "incomplete" };
        let message = self.message(status, json!([part(&reply.text)]));
        let mut object = self.object(status, json!([message]), usage(reply.usage));
        if !is_complete {
            object["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        }
        object
    }

    fn message(&self, status: &str, content: Value) -> Value {
        json!({ "id": self.message_id, "type": "message", "role": "assistant", "status": status, "content": content })
    }

    fn object(&self, status: &str, output: Value, usage: Value) -> Value {
        let sampling = &self.params.sampling;
        json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "model": self.served.name,
            "output": output, "usage": usage, "error": null, "incomplete_details": null, "background": false,
            "instructions": self.instructions, "max_output_tokens": self.params.max_output_tokens,
            "metadata": self.metadata, "parallel_tool_calls": false, "previous_response_id": null,
            "temperature": sampling.temperature, "top_p": sampling.top_p, "text": { "format": self.format },
            "tool_choice": "none", "tools": [], "truncation": "disabled", "store": false,
        })
    }
}

/// Sends numbered events. The first text triggers the opening events, so that a refusal before it still has its own
/// status.
struct Events {
    sink: Sink,
    sent: Mutex<u64>,
    opening: [(&'static str, Value); 4],
}

impl Events {
    fn send(&self, name: &str, event: Value) {
        // The lock keeps numbering and sending in the same order.
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if *sent == 0 {
            self.opening.iter().for_each(|(name, event)| self.numbered(name, event.clone(), &mut sent));
        }
        self.numbered(name, event, &mut sent);
    }

    fn numbered(&self, name: &str, mut event: Value, sent: &mut u64) {
        event["type"] = name.into();
        event["sequence_number"] = (*sent).into();
        *sent += 1;
        self.sink.event(name, &event);
    }
}

fn prompt(instructions: Option<&str>, input: ResponseInput) -> Result<Prompt> {
    let started = instructions.map_or_else(Prompt::new, |text| Prompt::new().system(text));
    match input {
        ResponseInput::Text(text) if text.is_empty() => Err(ServerError::invalid("the input is empty", "input")),
        ResponseInput::Text(text) => Ok(turn(started, Role::User, &text)),
        ResponseInput::Messages(messages) if messages.is_empty() => {
            Err(ServerError::invalid("the input has no messages", "input"))
        }
        ResponseInput::Messages(messages) => Ok(messages.iter().fold(started, |prompt, message| {
            let role = match message.role {
                ResponseRole::System => Role::System,
                ResponseRole::User => Role::User,
                ResponseRole::Assistant => Role::Assistant,
            };
            turn(prompt, role, &message.content.text())
        })),
    }
}

impl ResponseContent {
    fn text(&self) -> String {
        match self {
            ResponseContent::Text(text) => text.clone(),
            ResponseContent::Parts(parts) => {
                let text = |part: &ResponsePart| match part {
                    ResponsePart::InputText { text } | ResponsePart::OutputText { text } => text.clone(),
                };
                parts.iter().map(text).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// The output format, and the `format` field of the response.
fn output_format(format: Option<ResponseTextFormat>) -> (OutputFormat, Value) {
    match format {
        None | Some(ResponseTextFormat::Text) => (OutputFormat::Text, json!({ "type": "text" })),
        Some(ResponseTextFormat::JsonObject) => {
            (OutputFormat::Json(json!({ "type": "object" })), json!({ "type": "json_object" }))
        }
        Some(ResponseTextFormat::JsonSchema { name, description, schema, strict: _ }) => {
            let format = json!({ "type": "json_schema", "name": name, "description": description, "schema": schema,
                "strict": true });
            (OutputFormat::Json(schema), format)
        }
    }
}

fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": { "cached_tokens": usage.cached_tokens },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.prompt_tokens + usage.output_tokens,
    })
}
