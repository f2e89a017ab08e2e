//! Messages as Anthropic's API returns them, whole or as events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use calls::{Call, Finish, OnText, Piece, Reply, Usage};
use serde_json::{Map, Value, json};

use super::request::Asked;
use crate::app::{App, fresh_id};
use crate::error::Result;
use crate::openai::params::OutputLength;
use crate::openai::thinking::limits;
use crate::stream::Sink;

/// A message that is being generated.
pub(super) struct Generation {
    id: String,
    /// What the ids of tool calls begin with.
    call_id: String,
    asked: Asked,
    max_tokens: usize,
}

/// The state of a streamed message.
pub(super) struct Events {
    sink: Sink,
    /// The first event, until it is sent. It is sent with the first piece, so that a refusal before it has its own status.
    opening: Option<Value>,
    /// The block that is being written: its number and kind.
    block: Option<(usize, Kind)>,
    blocks: usize,
    tool_calls: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
    ToolUse,
}

impl Generation {
    pub fn new(asked: Asked, max_tokens: usize) -> Result<Generation> {
        let (id, call_id) = (fresh_id("msg")?, fresh_id("toolu")?);
        Ok(Generation { id, call_id, asked, max_tokens })
    }

    /// The call within what the context leaves, and its prompt's tokens.
    async fn call(&self, app: &App) -> Result<(Call, usize)> {
        let mut call = self.asked.call.clone();
        let prompt_tokens = app.prompt_tokens(&call).await?;
        // The limit of a request is that of another model, as a rule: it is an upper bound here.
        let left = app.caller.tokens().context_tokens(call.agent).saturating_sub(prompt_tokens).max(1);
        let asked = OutputLength::Tokens(left.min(self.max_tokens));
        call.limits = limits(app, &call, prompt_tokens, asked, call.limits.thinking_tokens)?;
        Ok((call, prompt_tokens))
    }

    /// The whole message.
    pub async fn message(&self, app: &App) -> Result<Value> {
        let (call, _) = self.call(app).await?;
        let limit = call.limits.reply_tokens();
        let reply = app.call(call.tenant, call).await?;
        let mut content = Vec::new();
        if let Some(thought) = &reply.thought {
            content.push(json!({ "type": "thinking", "thinking": thought, "signature": "" }));
        }
        if !reply.text.is_empty() {
            content.push(json!({ "type": "text", "text": reply.text }));
        }
        for (number, call) in reply.tool_calls.iter().enumerate() {
            let input: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
            content.push(tool_use(&self.id_of_call(number), &call.name, input));
        }
        let mut message = self.object(content.into(), usage(reply.usage));
        message["stop_reason"] = self.stop_reason(&reply, limit).into();
        message["stop_sequence"] = json!(reply.stopped_by);
        Ok(message)
    }

    /// Streams the message.
    pub async fn stream(&self, sink: Sink, app: &App) -> Result<()> {
        let (call, prompt_tokens) = self.call(app).await?;
        let limit = call.limits.reply_tokens();
        let counted = Usage { prompt_tokens, ..Usage::default() };
        let opening = json!({ "message": self.object(json!([]), usage(counted)) });
        let events = Arc::new(Mutex::new(Events::new(sink, opening)));
        let (written, call_id) = (Arc::clone(&events), self.call_id.clone());
        let on_text = OnText::pieces(move |piece| lock(&written).piece(piece, &call_id));
        let reply = app.call(call.tenant, Call { on_text: Some(on_text), ..call }).await?;
        let stop_reason = self.stop_reason(&reply, limit);
        lock(&events).end(stop_reason, reply.stopped_by.as_deref(), reply.usage);
        Ok(())
    }

    fn id_of_call(&self, number: usize) -> String {
        format!("{}-{number}", self.call_id)
    }

    fn object(&self, content: Value, usage: Value) -> Value {
        message(&self.id, &self.asked.model, content, usage)
    }

    /// Why a reply with this limit ended.
    fn stop_reason(&self, reply: &Reply, limit: usize) -> &'static str {
        let is_bound_by_context = limit < self.max_tokens;
        match reply.finish {
            Finish::Length | Finish::ClosedEarly if is_bound_by_context => "model_context_window_exceeded",
            Finish::Length | Finish::ClosedEarly | Finish::LoopClosed => "max_tokens",
            Finish::Stop | Finish::Repetition if !reply.tool_calls.is_empty() => "tool_use",
            Finish::Stop | Finish::Repetition if reply.stopped_by.is_some() => "stop_sequence",
            Finish::Stop | Finish::Repetition => "end_turn",
        }
    }
}

impl Events {
    /// No event yet; the first is preceded by `opening`.
    pub fn new(sink: Sink, opening: Value) -> Events {
        Events { sink, opening: Some(opening), block: None, blocks: 0, tool_calls: 0 }
    }

    /// Ends the message.
    pub fn end(&mut self, stop_reason: &str, stop_sequence: Option<&str>, used: Usage) {
        self.close();
        let delta = json!({ "stop_reason": stop_reason, "stop_sequence": stop_sequence });
        self.send("message_delta", json!({ "delta": delta, "usage": usage(used) }));
        self.send("message_stop", json!({}));
    }

    /// Sends a piece of the reply, in a block of its kind.
    pub fn piece(&mut self, piece: Piece<'_>, call_id: &str) {
        match piece {
            Piece::Text("", _) => {}
            Piece::Text(text, _) => {
                self.block(Kind::Text, || json!({ "type": "text", "text": "" }));
                self.delta(json!({ "type": "text_delta", "text": text }));
            }
            Piece::Thought(text) => {
                self.block(Kind::Thinking, || json!({ "type": "thinking", "thinking": "", "signature": "" }));
                self.delta(json!({ "type": "thinking_delta", "thinking": text }));
            }
            Piece::ToolCall(name) => {
                self.close();
                let id = format!("{call_id}-{}", self.tool_calls);
                self.tool_calls += 1;
                self.block(Kind::ToolUse, || tool_use(&id, name, Map::new()));
            }
            Piece::Arguments(text) => self.delta(json!({ "type": "input_json_delta", "partial_json": text })),
        }
    }

    /// Begins a block, unless one of this kind is being written.
    fn block(&mut self, kind: Kind, start: impl FnOnce() -> Value) {
        if self.block.is_some_and(|(_, current)| current == kind) {
            return;
        }
        self.close();
        let index = self.blocks;
        self.blocks += 1;
        self.block = Some((index, kind));
        self.send("content_block_start", json!({ "index": index, "content_block": start() }));
    }

    /// Sends a delta of the block that is being written.
    pub fn delta(&mut self, delta: Value) {
        let index = self.block.map_or(0, |(index, _)| index);
        self.send("content_block_delta", json!({ "index": index, "delta": delta }));
    }

    /// Ends the block that is being written, if one is.
    fn close(&mut self) {
        if let Some((index, _)) = self.block.take() {
            self.send("content_block_stop", json!({ "index": index }));
        }
    }

    /// Sends an event, after the opening ones.
    fn send(&mut self, name: &str, event: Value) {
        if let Some(opening) = self.opening.take() {
            self.sink.event("message_start", &typed("message_start", opening));
            self.sink.event("ping", &typed("ping", json!({})));
        }
        self.sink.event(name, &typed(name, event));
    }
}

fn typed(name: &str, event: Value) -> Value {
    let mut typed = Map::from_iter([("type".to_owned(), Value::from(name))]);
    if let Value::Object(fields) = event {
        typed.extend(fields);
    }
    typed.into()
}

fn tool_use(id: &str, name: &str, input: Map<String, Value>) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

/// A message that has not ended.
pub(super) fn message(id: &str, model: &str, content: Value, usage: Value) -> Value {
    json!({ "id": id, "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": null,
        "stop_sequence": null, "usage": usage })
}

/// Tokens of a request; those read from the cache are counted apart.
pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens.saturating_sub(usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    })
}

pub(super) fn lock(events: &Mutex<Events>) -> MutexGuard<'_, Events> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}
