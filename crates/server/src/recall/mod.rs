//! Corpora as chat models: a chat with the model `notes` is a question about the corpus `notes`, in every chat API.
//!
//! The APIs differ in how they write the steps, the text and the citations of an answer; what they ask, and what they get
//! to write, is the same and is here.

mod address;
mod cited;
mod conversation;
mod models;
mod steps;

pub(crate) use address::Address;
pub(crate) use cited::{Mark, Recalled, Source};
pub(crate) use conversation::Conversation;
pub(crate) use models::{CorpusModel, check_model_name, find, names, quick};

use std::sync::{Arc, Mutex, PoisonError};

use calls::{Agent, Call, Priority, Prompt, Reply};
use serde_json::Value;

use crate::app::App;
use crate::corpora::attached::files_by_document;
use crate::corpora::{AskRequest, Watch, answer, document_paths};
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;
use crate::warnings::Warnings;
use cited::Answered;
use steps::Steps;

/// A chat with a corpus.
#[derive(Clone)]
pub(crate) struct Question {
    pub model: CorpusModel,
    pub prompt: Prompt,
    /// Where the client reached this server.
    pub address: Address,
    pub wishes: Wishes,
}

/// The form of the answer that a client asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub temperature: Option<f32>,
    pub seed: Option<i64>,
    /// Whether the sources follow the text; true by default.
    pub footnotes: Option<bool>,
    /// Maximum pages that the answer is made from.
    pub pages: Option<usize>,
    /// Maximum tokens of a reply that is not from the corpus: about the chat itself.
    pub max_output_tokens: Option<usize>,
}

impl Question {
    /// True if the client asks about the chat itself, so that the model answers alone.
    pub fn is_task(&self) -> bool {
        Conversation::of(self.prompt.messages()).is_ok_and(|conversation| conversation.is_task())
    }
}

/// Answers from the corpus. `on_step` gets a line for each step while it runs.
///
/// # Errors
/// As a question about the corpus; [`ServerError::Invalid`] if the chat has none.
pub(crate) async fn recall(
    app: &App,
    tenant: &Arc<Tenant>,
    question: Question,
    on_step: impl Fn(&str) + Send + Sync + 'static,
) -> Result<Recalled> {
    let Question { model, prompt, address, wishes } = question;
    let conversation = Conversation::of(prompt.messages())?;
    if conversation.is_task() {
        return Ok(Recalled::plain(of_model(app, tenant, prompt, wishes.max_output_tokens).await?));
    }
    let mut lines = Vec::new();
    if conversation.has_context {
        lines.push("Left out: the texts that were attached to the question".to_owned());
        on_step(&lines[0]);
    }
    let request = AskRequest {
        question: conversation.question,
        earlier: conversation.turns,
        method: model.method().map(str::to_owned),
        temperature: wishes.temperature,
        seed: wishes.seed.map(i64::cast_unsigned),
        k: wishes.pages,
        ..AskRequest::default()
    };
    let steps = Arc::new(Mutex::new(Steps::default()));
    let watch: Watch = {
        let steps = Arc::clone(&steps);
        Arc::new(move |name, event| {
            let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(line) = (name == "step").then(|| steps.add(event)).flatten() {
                on_step(&line);
            }
        })
    };
    let report = Arc::clone(&watch);
    let report = move |progress: &Value| report("step", progress);
    let answered = answer(app, tenant, model.corpus.clone(), request, Some(watch), report).await?;
    let answered: Answered = serde_json::from_value(answered)
        .map_err(|error| ServerError::Worker(format!("the answer cannot be read: {error}")))?;
    // A corpus that is removed meanwhile has no documents to link to.
    let documents = document_paths(tenant, model.corpus.clone()).await.unwrap_or_default();
    lines.append(&mut steps.lock().unwrap_or_else(PoisonError::into_inner).lines);
    let footnotes = wishes.footnotes.unwrap_or(true);
    let files = files_by_document(tenant, model.corpus.clone()).await.unwrap_or_default();
    let mut told = Recalled::new(answered, lines, &documents, &model.corpus, &address, footnotes);
    for source in &mut told.sources {
        source.file_id = files.get(&source.title).map(|file| file.id.clone()).or(source.file_id.take());
    }
    Ok(told)
}

/// The reply of the model that answers, without the corpus.
async fn of_model(app: &App, tenant: &Tenant, prompt: Prompt, most: Option<usize>) -> Result<Reply> {
    let max_output_tokens = most.unwrap_or(app.config.default_output_tokens);
    let call =
        Call { priority: Priority::Interactive, ..Call::new(Agent::Responder, "chat", prompt, max_output_tokens) };
    app.with_deadline(app.call(tenant.id, call)).await
}

/// Warns that fields of a request have no effect on an answer from a corpus: those that are used.
pub(crate) fn warn_of_unused(fields: &[(&str, bool)], warnings: &Warnings) {
    let used: Vec<&str> = fields.iter().filter(|(_, used)| *used).map(|(name, _)| *name).collect();
    if !used.is_empty() {
        warnings.add(format!("no effect on answers from a corpus: {}", used.join(", ")));
    }
}
