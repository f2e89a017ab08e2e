//! Replies of chat and generate, as objects and as lines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::Json;
use axum::response::{IntoResponse, Response};
use calls::{Call, Finish, OnText, Piece, Reply, TokenLogprob, ToolCall, Usage};
use serde_json::{Value, json};

use crate::admission::Permit;
use crate::app::{App, fresh_id, since_1970};
use crate::error::Result;
use crate::openai::{closing_reason, logprob_entries};
use crate::stream::{Framing, Sink, respond};
use crate::time::rfc3339;

/// Response format: chat and generate differ only in this.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dialect {
    Chat,
    Generate,
}

/// A finished reply.
pub(super) struct Finished<'a> {
    pub text: &'a str,
    pub thought: Option<&'a str>,
    pub tool_calls: &'a [ToolCall],
    pub logprobs: &'a [TokenLogprob],
    pub finish: Finish,
    pub usage: Usage,
}

impl<'a> From<&'a Reply> for Finished<'a> {
    fn from(reply: &'a Reply) -> Self {
        Finished {
            text: &reply.text,
            thought: reply.thought.as_deref(),
            tool_calls: &reply.tool_calls,
            logprobs: &reply.logprobs,
            finish: reply.finish,
            usage: reply.usage,
        }
    }
}

impl Dialect {
    pub fn object(self, model: &str, text: &str) -> Value {
        let created = rfc3339(since_1970().as_secs());
        match self {
            Dialect::Chat => {
                json!({ "model": model, "created_at": created, "message": { "role": "assistant", "content": text }, "done": false })
            }
            Dialect::Generate => json!({ "model": model, "created_at": created, "response": text, "done": false }),
        }
    }

    /// A piece of the text, with the log-probabilities of its tokens if they are asked for.
    fn piece(self, model: &str, text: &str, tokens: &[TokenLogprob]) -> Value {
        let mut object = self.object(model, text);
        if !tokens.is_empty() {
            object["logprobs"] = logprob_entries(tokens).into();
        }
        object
    }

    /// A piece of a thought.
    pub fn thought(self, model: &str, text: &str) -> Value {
        let mut object = self.object(model, "");
        self.place(&mut object)["thinking"] = text.into();
        object
    }

    /// Calls of tools; clients read one object of a stream for each.
    fn tool_calls(self, model: &str, calls: &[ToolCall], from: usize) -> Value {
        let mut object = self.object(model, "");
        self.place(&mut object)["tool_calls"] = calls_json(calls, from);
        object
    }

    /// What holds the text.
    fn place(self, object: &mut Value) -> &mut Value {
        match self {
            Dialect::Chat => &mut object["message"],
            Dialect::Generate => object,
        }
    }

    /// The whole reply, with token counts and times.
    pub fn whole(self, model: &str, reply: &Finished<'_>, times: &Times) -> Value {
        let mut object = self.end(model, reply, times);
        let place = self.place(&mut object);
        match self {
            Dialect::Chat => place["content"] = reply.text.into(),
            Dialect::Generate => place["response"] = reply.text.into(),
        }
        if let Some(thought) = reply.thought {
            place["thinking"] = thought.into();
        }
        if !reply.tool_calls.is_empty() {
            place["tool_calls"] = calls_json(reply.tool_calls, 0);
        }
        object
    }

    /// The final object of a stream, with token counts and times.
    pub fn end(self, model: &str, reply: &Finished<'_>, times: &Times) -> Value {
        let mut object = self.piece(model, "", reply.logprobs);
        object["done"] = true.into();
        object["done_reason"] = closing_reason(reply.finish).into();
        let (total, reading) = times.nanoseconds();
        object["total_duration"] = total.into();
        object["load_duration"] = times.load_nanoseconds().into();
        object["prompt_eval_count"] = reply.usage.prompt_tokens.into();
        object["prompt_eval_duration"] = reading.into();
        object["eval_count"] = reply.usage.output_tokens.into();
        object["eval_duration"] = total.saturating_sub(reading + times.load_nanoseconds()).into();
        object
    }

    /// The answer to a request without a prompt, which loads a model or unloads it.
    pub fn loaded(self, model: &str, reason: &str, times: &Times) -> Response {
        times.note_loaded();
        let mut object = self.object(model, "");
        object["done"] = true.into();
        object["done_reason"] = reason.into();
        object["load_duration"] = times.load_nanoseconds().into();
        object["total_duration"] = times.nanoseconds().0.into();
        Json(object).into_response()
    }
}

/// Calls of tools as Ollama's clients read them: arguments are objects.
fn calls_json(calls: &[ToolCall], from: usize) -> Value {
    let call = |(index, call): (usize, &ToolCall)| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        json!({ "id": call.id, "function": { "index": index, "name": call.name, "arguments": arguments } })
    };
    (from..).zip(calls).map(call).collect()
}

/// When a request began, when its model was loaded, and when the first text of its reply came.
pub(super) struct Times {
    started: Instant,
    loaded: OnceLock<Instant>,
    first: OnceLock<Instant>,
}

impl Times {
    pub fn start() -> Arc<Times> {
        Arc::new(Times { started: Instant::now(), loaded: OnceLock::new(), first: OnceLock::new() })
    }

    /// The model is in memory.
    pub fn note_loaded(&self) {
        self.loaded.get_or_init(Instant::now);
    }

    fn load_nanoseconds(&self) -> u64 {
        self.loaded.get().map_or(0, |at| (*at - self.started).as_nanos() as u64)
    }

    pub fn note_first(&self) {
        self.first.get_or_init(Instant::now);
    }

    /// Of all, and from the model to the first text, with a thought if there is one.
    fn nanoseconds(&self) -> (u64, u64) {
        let now = Instant::now();
        let first = self.first.get().copied().unwrap_or(now);
        let began = self.loaded.get().copied().unwrap_or(self.started);
        ((now - self.started).as_nanos() as u64, (first - began).as_nanos() as u64)
    }
}

/// Gives the calls of tools ids of their own: a client has those of all replies of a chat.
fn with_ids(mut reply: Reply) -> Result<Reply> {
    let key = fresh_id("call")?;
    for (number, call) in reply.tool_calls.iter_mut().enumerate() {
        call.id = format!("{key}-{number}");
    }
    Ok(reply)
}

/// Runs a call and writes its reply.
pub(super) async fn reply_to(
    app: App,
    permit: Permit,
    call: Call,
    model: String,
    dialect: Dialect,
    streams: bool,
    times: Arc<Times>,
) -> Result<Response> {
    times.note_loaded();
    let noting = Arc::clone(&times);
    if !streams {
        let on_text = Some(OnText::new(move |_| noting.note_first()));
        let reply = app.with_deadline(async { app.call(call.tenant, Call { on_text, ..call }).await }).await?;
        let reply = with_ids(reply)?;
        return Ok(Json(dialect.whole(&model, &Finished::from(&reply), &times)).into_response());
    }
    respond(Framing::Lines, |sink: Sink| async move {
        let _permit = permit;
        let (out, name) = (sink.clone(), model.clone());
        let sent_logprobs = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&sent_logprobs);
        let on_text = OnText::pieces(move |piece| match piece {
            Piece::Thought(text) => out.json(&dialect.thought(&name, text)),
            Piece::Text("", []) | Piece::ToolCall(_) | Piece::Arguments(_) => {}
            Piece::Text(text, tokens) => {
                noting.note_first();
                counter.fetch_add(tokens.len(), Ordering::Relaxed);
                out.json(&dialect.piece(&name, text, tokens));
            }
        });
        let call = Call { on_text: Some(on_text), ..call };
        let reply = with_ids(app.with_deadline(async { app.call(call.tenant, call).await }).await?)?;
        for (number, call) in reply.tool_calls.chunks(1).enumerate() {
            sink.json(&dialect.tool_calls(&model, call, number));
        }
        let logprobs = reply.logprobs.get(sent_logprobs.load(Ordering::Relaxed)..).unwrap_or_default();
        sink.json(&dialect.end(&model, &Finished { logprobs, ..Finished::from(&reply) }, &times));
        Ok(())
    })
    .await
}
