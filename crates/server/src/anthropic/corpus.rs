//! Messages of a corpus: an answer from memory, its steps as a thought, its citations as `char_location`s.

use std::sync::{Arc, Mutex};

use axum::Json;
use axum::response::{IntoResponse, Response};
use calls::{Finish, Piece, Usage};
use serde_json::{Value, json};

use super::reply::{Events, lock, message, usage};
use super::request::MessagesRequest;
use crate::admission::Permit;
use crate::app::{App, fresh_id};
use crate::error::Result;
use crate::recall::{Address, CorpusModel, Recalled, Source, recall};
use crate::stream::{Framing, respond};
use crate::tenant::Tenant;
use crate::warnings::Warnings;

/// Answers a conversation with a corpus.
pub(super) async fn reply(
    app: App,
    tenant: Arc<Tenant>,
    model: CorpusModel,
    address: Address,
    request: MessagesRequest,
    permit: Permit,
    warnings: &Warnings,
) -> Result<Response> {
    let (streams, shows_steps) = (request.stream(), request.thinks());
    let (id, name) = (fresh_id("msg")?, model.name());
    let question = request.question(model, address, warnings)?;
    if !streams {
        let told = recall(&app, &tenant, question, |_| {}).await?;
        let mut content = Vec::new();
        if shows_steps && !told.steps.is_empty() {
            content.push(json!({ "type": "thinking", "thinking": told.steps.join("\n"), "signature": "" }));
        }
        content.push(json!({ "type": "text", "text": told.text, "citations": citations(&told) }));
        let mut whole = message(&id, &name, content.into(), usage(told.usage));
        whole["stop_reason"] = stop_reason(&told).into();
        return Ok(Json(whole).into_response());
    }
    respond(Framing::AnthropicEvents, |sink| async move {
        let _permit = permit;
        let opening = json!({ "message": message(&id, &name, json!([]), usage(Usage::default())) });
        let events = Arc::new(Mutex::new(Events::new(sink, opening)));
        let stepping = Arc::clone(&events);
        let on_step = move |line: &str| {
            if shows_steps {
                lock(&stepping).piece(Piece::Thought(&format!("{line}\n")), "");
            }
        };
        let told = recall(&app, &tenant, question, on_step).await?;
        let mut events = lock(&events);
        events.piece(Piece::Text(&told.text, &[]), "");
        for citation in citations(&told) {
            events.delta(json!({ "type": "citations_delta", "citation": citation }));
        }
        events.end(stop_reason(&told), None, told.usage);
        Ok(())
    })
    .await
}

/// Why an answer ends, in Anthropic's terms.
fn stop_reason(told: &Recalled) -> &'static str {
    match told.finish {
        Finish::Stop | Finish::Repetition => "end_turn",
        Finish::Length | Finish::ClosedEarly | Finish::LoopClosed => "max_tokens",
    }
}

/// The sources as spans of documents. Where they are cited, the text has their number.
fn citations(told: &Recalled) -> Vec<Value> {
    let mut titles: Vec<&str> = Vec::new();
    for source in &told.sources {
        if !titles.contains(&source.title.as_str()) {
            titles.push(&source.title);
        }
    }
    let citation = |source: &Source| {
        let index = titles.iter().position(|title| *title == source.title);
        json!({ "type": "char_location", "cited_text": source.quote, "document_index": index,
            "document_title": source.title, "start_char_index": source.start, "end_char_index": source.end,
            "file_id": source.file_id })
    };
    told.sources.iter().map(citation).collect()
}
