//! Chat completions of a corpus: an answer from memory, its steps as reasoning, its citations as `url_citation`s.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::super::messages::prompt;
use super::super::params::refuse_if;
use super::super::quoted::Quoted;
use super::super::tools::ToolChoice;
use super::super::usage;
use super::{ChatRequest, ResponseFormat, StreamOptions, closing_reason};
use crate::admission::Permit;
use crate::app::{App, fresh_id, since_1970};
use crate::error::Result;
use crate::recall::{Address, CorpusModel, Mark, Question, Recalled, Wishes, recall, warn_of_unused};
use crate::stream::{Framing, respond};
use crate::tenant::Tenant;
use crate::warnings::Warnings;

/// What all chunks of a response have in common.
#[derive(Clone)]
struct Head {
    id: String,
    created: u64,
    model: String,
    include_usage: bool,
    /// True once a chunk was made: the first one has the role.
    has_begun: Arc<AtomicBool>,
}

/// Answers a chat with a corpus.
pub(super) async fn complete(
    app: App,
    tenant: Arc<Tenant>,
    model: CorpusModel,
    address: Address,
    request: ChatRequest,
    permit: Permit,
    warnings: &Warnings,
) -> Result<Response> {
    let streams = request.stream.unwrap_or(false);
    let include_usage = StreamOptions::include_usage(request.stream_options, streams)?;
    let (id, created, has_begun) = (fresh_id("chatcmpl")?, since_1970().as_secs(), Arc::default());
    let head = Head { id, created, model: model.name(), include_usage, has_begun };
    let corpus = model.corpus.clone();
    let question = read(request, model, address, warnings)?;
    if !streams {
        let quoted = Quoted::before(&tenant, vec![corpus]).await?;
        let told = recall(&app, &tenant, question, |_| {}).await?;
        return Ok((Extension(quoted), Json(head.whole(&told))).into_response());
    }
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        let (out, first) = (sink.clone(), head.clone());
        let on_step = move |line: &str| out.json(&first.chunk(json!({ "reasoning_content": format!("{line}\n") })));
        let told = recall(&app, &tenant, question, on_step).await?;
        sink.json(&head.chunk(json!({ "content": told.text })));
        if !told.marks.is_empty() {
            sink.json(&head.chunk(json!({ "annotations": annotations(&told) })));
        }
        sink.json(&head.end(&told));
        if head.include_usage {
            let mut last = head.object("chat.completion.chunk", json!([]));
            last["usage"] = usage(told.usage);
            sink.json(&last);
        }
        sink.done();
        Ok(())
    })
    .await
}

/// The question of a request. What would give the answer another form is refused.
fn read(request: ChatRequest, model: CorpusModel, address: Address, warnings: &Warnings) -> Result<Question> {
    refuse_if(request.n.is_some_and(|n| n != 1), "n")?;
    refuse_if(request.logprobs.unwrap_or(false), "logprobs")?;
    refuse_if(request.stop.is_some_and(|stop| !stop.into_vec().is_empty()), "stop")?;
    refuse_if(!matches!(request.response_format, None | Some(ResponseFormat::Text)), "response_format")?;
    refuse_if(request.tool_choice.as_ref().is_some_and(ToolChoice::requires_a_call), "tool_choice")?;
    refuse_if(request.continue_final_message.unwrap_or(false), "continue_final_message")?;
    refuse_if(request.add_generation_prompt == Some(false), "add_generation_prompt")?;
    let max_output_tokens = request.max_completion_tokens.or(request.max_tokens);
    let wishes = Wishes {
        temperature: request.temperature,
        seed: request.seed,
        footnotes: request.footnotes,
        pages: None,
        max_output_tokens,
    };
    let question = Question { model, prompt: prompt(&request.messages, Vec::new(), warnings)?, address, wishes };
    let unused = [
        ("tools", request.tools.is_some_and(|tools| !tools.is_empty())),
        ("max_tokens", max_output_tokens.is_some() && !question.is_task()),
        ("top_p", request.top_p.is_some_and(|top_p| top_p < 1.0)),
        ("top_k", request.top_k.is_some_and(|top_k| top_k > 0)),
        ("min_p", request.min_p.is_some_and(|min_p| min_p > 0.0)),
        ("frequency_penalty", request.frequency_penalty.is_some_and(|penalty| penalty != 0.0)),
        ("presence_penalty", request.presence_penalty.is_some_and(|penalty| penalty != 0.0)),
        ("repetition_penalty", request.repetition_penalty.is_some_and(|penalty| penalty != 1.0)),
        ("logit_bias", request.logit_bias.is_some_and(|biases| !biases.is_empty())),
        ("reasoning_effort", request.reasoning_effort.is_some_and(|effort| effort.tokens() > 0)),
        ("chat_template_kwargs", request.chat_template_kwargs.is_some_and(|variables| !variables.is_empty())),
    ];
    warn_of_unused(&unused, warnings);
    Ok(question)
}

impl Head {
    fn object(&self, kind: &str, choices: Value) -> Value {
        json!({ "id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices })
    }

    fn whole(&self, told: &Recalled) -> Value {
        let mut message =
            json!({ "role": "assistant", "content": told.text, "refusal": null, "annotations": annotations(told) });
        if !told.steps.is_empty() {
            message["reasoning_content"] = told.steps.join("\n").into();
        }
        let finish_reason = closing_reason(told.finish);
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason });
        let mut whole = self.object("chat.completion", json!([choice]));
        whole["usage"] = usage(told.usage);
        whole
    }

    fn chunk(&self, mut delta: Value) -> Value {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            delta["role"] = "assistant".into();
        }
        self.with_choice(json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }))
    }

    fn end(&self, told: &Recalled) -> Value {
        let finish_reason = closing_reason(told.finish);
        self.with_choice(json!({ "index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_reason }))
    }

    fn with_choice(&self, choice: Value) -> Value {
        let mut chunk = self.object("chat.completion.chunk", json!([choice]));
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

/// A `url_citation` for each mark, with the place of the mark in the text.
fn annotations(told: &Recalled) -> Value {
    let annotation = |Mark { source, start, end }: &Mark| {
        let source = &told.sources[*source];
        let citation = json!({ "start_index": start, "end_index": end, "url": source.url, "title": source.title });
        json!({ "type": "url_citation", "url_citation": citation })
    };
    told.marks.iter().map(annotation).collect()
}
