//! Responses as objects and as events: the items of the output are put together while they arrive.

use std::sync::{Mutex, MutexGuard, PoisonError};

use calls::{Piece, Usage};
use serde_json::{Value, json};

use super::namespaces::Namespaces;
use crate::app::fresh_id;
use crate::error::{Result, ServerError};
use crate::stream::Sink;

/// What a response says about its request.
pub(super) struct Frame {
    pub id: String,
    pub created: u64,
    /// How responses name the model.
    pub model: String,
    pub namespaces: Namespaces,
    /// The fields that repeat the request.
    pub fields: Value,
}

impl Frame {
    pub fn object(&self, status: &str, output: &[Value], usage: Option<Value>) -> Value {
        let mut object = json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "model": self.model,
            "output": output, "usage": usage, "error": null, "incomplete_details": null,
        });
        if let (Some(object), Some(fields)) = (object.as_object_mut(), self.fields.as_object()) {
            object.extend(fields.clone());
        }
        object
    }

    /// A response that failed.
    pub fn failed(&self, error: &ServerError, output: &[Value]) -> Value {
        let mut object = self.object("failed", output, None);
        object["error"] = json!({ "code": error.status().1, "message": error.text() });
        object
    }
}

/// An item that is being written.
enum Open {
    Search { query: String, results: Value },
    Reasoning { text: String },
    Message { text: String, annotations: Vec<Value> },
    Call { name: String, arguments: String },
}

/// The output so far, and the events that tell of it. The first piece triggers the opening events, so that a refusal
/// before it still has its own status.
pub(super) struct Output {
    /// Where events go, if the response is streamed.
    sink: Option<Sink>,
    opening: Value,
    namespaces: Namespaces,
    /// Events so far.
    sent: u64,
    /// What the ids of items end with.
    key: String,
    open: Option<Open>,
    finished: Vec<Value>,
}

impl Output {
    pub fn new(frame: &Frame, sink: Option<Sink>) -> Result<Output> {
        let opening = frame.object("in_progress", &[], None);
        let key = fresh_id("")?;
        let namespaces = frame.namespaces.clone();
        Ok(Output { sink, opening, namespaces, sent: 0, key, open: None, finished: Vec::new() })
    }

    /// True once an event was sent.
    pub fn has_started(&self) -> bool {
        self.sent > 0
    }

    pub fn finished(&self) -> &[Value] {
        &self.finished
    }

    /// Adds a piece of a reply.
    pub fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Thought(delta) => {
                self.begin_reasoning();
                if let Some(Open::Reasoning { text }) = &mut self.open {
                    text.push_str(delta);
                }
                self.event("response.reasoning_summary_text.delta", json!({ "summary_index": 0, "delta": delta }));
            }
            Piece::Text("", _) => {}
            Piece::Text(delta, _) => {
                self.begin_message();
                if let Some(Open::Message { text, .. }) = &mut self.open {
                    text.push_str(delta);
                }
                self.event("response.output_text.delta", json!({ "content_index": 0, "delta": delta, "logprobs": [] }));
            }
            Piece::ToolCall(name) => self.begin(Open::Call { name: name.to_owned(), arguments: String::new() }),
            Piece::Arguments(delta) => {
                if let Some(Open::Call { arguments, .. }) = &mut self.open {
                    arguments.push_str(delta);
                }
                self.event("response.function_call_arguments.delta", json!({ "delta": delta }));
            }
        }
    }

    /// Begins a search for files.
    pub fn begin_search(&mut self, query: &str) {
        self.begin(Open::Search { query: query.to_owned(), results: Value::Null });
        for name in ["in_progress", "searching"] {
            self.event(&format!("response.file_search_call.{name}"), json!({}));
        }
    }

    /// Ends the search with what it found.
    pub fn end_search(&mut self, found: Value) {
        if let Some(Open::Search { results, .. }) = &mut self.open {
            *results = found;
        }
        self.close("completed");
    }

    /// Adds annotations to the text that is being written.
    pub fn annotate(&mut self, all: Vec<Value>) {
        for annotation in all {
            let Some(Open::Message { annotations, .. }) = &mut self.open else { return };
            let index = annotations.len();
            annotations.push(annotation.clone());
            let event = json!({ "content_index": 0, "annotation_index": index, "annotation": annotation });
            self.event("response.output_text.annotation.added", event);
        }
    }

    /// Ends the output; without any item it has an empty message.
    pub fn end(&mut self, is_complete: bool) {
        let has_reply = |item: &Value| item["type"] == "message" || item["type"] == "function_call";
        let is_open = matches!(self.open, Some(Open::Message { .. } | Open::Call { .. }));
        if !is_open && !self.finished.iter().any(has_reply) {
            self.begin_message();
        }
        self.close(if is_complete { "completed" } else { "incomplete" });
    }

    /// Sends the last event.
    pub fn send_response(&mut self, name: &str, response: &Value) {
        self.send(name, json!({ "response": response }));
    }

    fn begin_reasoning(&mut self) {
        if !matches!(self.open, Some(Open::Reasoning { .. })) {
            self.begin(Open::Reasoning { text: String::new() });
            let part = json!({ "type": "summary_text", "text": "" });
            self.event("response.reasoning_summary_part.added", json!({ "summary_index": 0, "part": part }));
        }
    }

    fn begin_message(&mut self) {
        if !matches!(self.open, Some(Open::Message { .. })) {
            self.begin(Open::Message { text: String::new(), annotations: Vec::new() });
            self.event("response.content_part.added", json!({ "content_index": 0, "part": part("", &[]) }));
        }
    }

    fn begin(&mut self, open: Open) {
        self.close("completed");
        let mut item = self.item(&open, "in_progress");
        if matches!(open, Open::Message { .. }) {
            item["content"] = json!([]);
        }
        self.open = Some(open);
        self.send("response.output_item.added", json!({ "output_index": self.finished.len(), "item": item }));
    }

    /// Ends the item that is being written, if one is.
    fn close(&mut self, status: &str) {
        let Some(open) = &self.open else { return };
        let item = self.item(open, status);
        match open {
            Open::Search { .. } => self.event("response.file_search_call.completed", json!({})),
            Open::Reasoning { text } => {
                let part = json!({ "type": "summary_text", "text": text });
                let text = text.clone();
                self.event("response.reasoning_summary_text.done", json!({ "summary_index": 0, "text": text }));
                self.event("response.reasoning_summary_part.done", json!({ "summary_index": 0, "part": part }));
            }
            Open::Message { text, .. } => {
                let text = text.clone();
                let done = json!({ "content_index": 0, "text": text, "logprobs": [] });
                self.event("response.output_text.done", done);
                let done = json!({ "content_index": 0, "part": item["content"][0] });
                self.event("response.content_part.done", done);
            }
            Open::Call { name, arguments } => {
                let mut done = json!({ "arguments": arguments });
                self.namespaces.write(name, &mut done);
                self.event("response.function_call_arguments.done", done);
            }
        }
        self.send("response.output_item.done", json!({ "output_index": self.finished.len(), "item": item }));
        self.open = None;
        self.finished.push(item);
    }

    fn item(&self, open: &Open, status: &str) -> Value {
        let id = self.id(open);
        match open {
            Open::Search { query, results } => {
                json!({ "id": id, "type": "file_search_call", "status": status, "queries": [query], "results": results })
            }
            Open::Reasoning { text } if text.is_empty() => json!({ "id": id, "type": "reasoning", "summary": [] }),
            Open::Reasoning { text } => {
                json!({ "id": id, "type": "reasoning", "summary": [{ "type": "summary_text", "text": text }] })
            }
            Open::Message { text, annotations } => {
                json!({ "id": id, "type": "message", "role": "assistant", "status": status, "content": [part(text, annotations)] })
            }
            Open::Call { name, arguments } => {
                let call_id = format!("call{}-{}", self.key, self.finished.len());
                let mut item = json!({ "id": id, "type": "function_call", "status": status, "call_id": call_id,
                    "arguments": arguments });
                self.namespaces.write(name, &mut item);
                item
            }
        }
    }

    /// The id of the item that is being written.
    fn id(&self, open: &Open) -> String {
        let kind = match open {
            Open::Search { .. } => "fs",
            Open::Reasoning { .. } => "rs",
            Open::Message { .. } => "msg",
            Open::Call { .. } => "fc",
        };
        format!("{kind}{}-{}", self.key, self.finished.len())
    }

    /// Sends an event about the item that is being written.
    fn event(&mut self, name: &str, mut event: Value) {
        let Some(open) = &self.open else { return };
        event["item_id"] = self.id(open).into();
        event["output_index"] = self.finished.len().into();
        self.send(name, event);
    }

    fn send(&mut self, name: &str, event: Value) {
        if self.sink.is_none() {
            return;
        }
        if self.sent == 0 {
            for opening in ["response.created", "response.in_progress"] {
                self.numbered(opening, json!({ "response": self.opening }));
            }
        }
        self.numbered(name, event);
    }

    fn numbered(&mut self, name: &str, mut event: Value) {
        event["type"] = name.into();
        event["sequence_number"] = self.sent.into();
        self.sent += 1;
        if let Some(sink) = &self.sink {
            sink.event(name, &event);
        }
    }
}

fn part(text: &str, annotations: &[Value]) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": annotations, "logprobs": [] })
}

pub(super) fn usage(usage: Usage, reasoning_tokens: usize) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": { "cached_tokens": usage.cached_tokens },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": reasoning_tokens },
        "total_tokens": usage.prompt_tokens + usage.output_tokens,
    })
}

pub(super) fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}
