//! Chat and generate with a corpus: an answer from memory, its steps as a thought, its sources as footnotes.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use calls::Prompt;
use serde_json::Value;

use super::options::{Options, Wishes};
use super::reply::{Dialect, Finished, Times};
use crate::admission::Permit;
use crate::app::App;
use crate::error::Result;
use crate::openai::params::refuse_if;
use crate::recall::{self, Address, CorpusModel, Question, Recalled, recall, warn_of_unused};
use crate::stream::{Framing, respond};
use crate::tenant::Tenant;
use crate::warnings::Warnings;

/// A chat with a corpus.
pub(super) struct CorpusChat {
    pub model: CorpusModel,
    pub address: Address,
    pub prompt: Prompt,
    pub wishes: Wishes,
    pub dialect: Dialect,
    pub streams: bool,
}

/// Answers a chat with a corpus. What would give the answer another form is refused.
pub(super) async fn reply(
    app: App,
    tenant: Arc<Tenant>,
    chat: CorpusChat,
    permit: Permit,
    warnings: &Warnings,
) -> Result<Response> {
    let CorpusChat { model, address, prompt, wishes, dialect, streams } = chat;
    refuse_if(wishes.format.is_some_and(|format| format != ""), "format")?;
    refuse_if(wishes.logprobs.unwrap_or(false), "logprobs")?;
    let options = Options::read(wishes.options, warnings)?;
    refuse_if(options.stops(), "options.stop")?;
    let shows_steps = !matches!(wishes.think, Some(Value::Bool(false)));
    let name = model.name();
    let wishes = recall::Wishes {
        temperature: options.temperature,
        seed: options.seed,
        footnotes: None,
        pages: None,
        max_output_tokens: options.max_output_tokens(),
    };
    let question = Question { model, prompt, address, wishes };
    let unused = options.of_generation().map(|(name, used)| (name, used && !question.is_task()));
    warn_of_unused(&unused, warnings);
    let times = Times::start();
    if !streams {
        let first = Arc::clone(&times);
        let told = recall(&app, &tenant, question, move |_| first.note_first()).await?;
        times.note_first();
        let thought = Some(told.steps.join("\n")).filter(|steps| shows_steps && !steps.is_empty());
        let whole = dialect.whole(&name, &finished(&told, thought.as_deref()), &times);
        return Ok(Json(whole).into_response());
    }
    respond(Framing::Lines, |sink| async move {
        let _permit = permit;
        let (out, model, first) = (sink.clone(), name.clone(), Arc::clone(&times));
        let on_step = move |line: &str| {
            first.note_first();
            if shows_steps {
                out.json(&dialect.thought(&model, &format!("{line}\n")));
            }
        };
        let told = recall(&app, &tenant, question, on_step).await?;
        times.note_first();
        sink.json(&dialect.object(&name, &told.text));
        sink.json(&dialect.end(&name, &finished(&told, None), &times));
        Ok(())
    })
    .await
}

fn finished<'a>(told: &'a Recalled, thought: Option<&'a str>) -> Finished<'a> {
    Finished { text: &told.text, thought, tool_calls: &[], logprobs: &[], finish: told.finish, usage: told.usage }
}
