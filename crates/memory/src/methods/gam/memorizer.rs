//! The memorizer: an abstract of each page, in order (section 2.2.1, equations 1 and 2).

use calls::{Agent, Stability};
use store::{Author, Corpus, Layer, PassageId, Writer};

use super::prompts::{MEMORIZE, NO_MEMORY};
use crate::core::embed::ABSTRACT;
use crate::core::error::Result;
use crate::core::origin::dated;
use crate::core::preparation::Progress;
use crate::core::prompt::{Input, Instructions, build, words};
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

/// Tokens of an abstract (released code: 256).
const MAX_OUTPUT_TOKENS: usize = 256;

/// Writes the abstract of every page that has none, in order. Each is durable before the next call.
///
/// # Errors
/// If a call or the store fails; abstracts stored before stay.
pub async fn memorise(writer: &mut Writer, session: &Session<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    let pending = writer.pending(Layer::Page, ABSTRACT)?;
    let author = author(session);
    let report = |done| Progress { step: "memorising", unit: "page", done, of: pending.len() };
    for (done, page) in pending.iter().enumerate() {
        progress(report(done));
        let text = dated(*page, writer)?;
        let memo: Vec<Entry> = memo(writer)?.into_iter().filter(|entry| entry.page < *page).collect();
        let context = latest(&memo, session)?;
        let abstract_ = one_line(&session.text(ask(&context, &text, session)).await?);
        writer.put_notes(*page, &[(ABSTRACT, &abstract_)], &author)?;
    }
    if !pending.is_empty() {
        progress(report(pending.len()));
    }
    Ok(())
}

fn ask(memory_context: &str, input_message: &str, session: &Session<'_>) -> Ask {
    let inputs = vec![
        Input::new("MEMORY_CONTEXT", Stability::AppendOnly, memory_context),
        Input::new("INPUT_MESSAGE", Stability::Volatile, input_message),
    ];
    let max_output_tokens = session.output_tokens(Agent::Memorizer, MAX_OUTPUT_TOKENS);
    let rules = format!("{}\nThe abstract may have {} words.", MEMORIZE.rules, words(max_output_tokens));
    let prompt = build(session.settings.layout, Instructions { rules: &rules, ..MEMORIZE }, inputs);
    Ask { agent: Agent::Memorizer, step: "gam.memorize", prompt, thinking_tokens: 0, max_output_tokens, draw: 0 }
}

/// Joins an abstract into one line, so that every line of the memo starts with its page.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The author of abstracts: the model, and a digest of its instructions.
fn author(session: &Session<'_>) -> Author {
    let prompt = format!("gam.memorize {}", store::Digest::of(&[MEMORIZE.task, MEMORIZE.rules, MEMORIZE.cue]));
    Author { model: session.caller.models().model(Agent::Memorizer).to_owned(), prompt }
}

/// One page's line of the memo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub page: PassageId,
    pub line: String,
}

/// The memo: the abstracts of all pages in order.
pub(super) fn memo(corpus: &Corpus) -> Result<Vec<Entry>> {
    let notes = corpus.notes_named(Layer::Page, ABSTRACT)?;
    let entry = |note: store::Note| Entry { line: format!("Page {}: {}", note.passage, note.text), page: note.passage };
    Ok(notes.into_iter().map(entry).collect())
}

/// A memo as text for a prompt.
pub(super) fn render(memo: &[Entry]) -> String {
    if memo.is_empty() {
        return NO_MEMORY.to_owned();
    }
    memo.iter().map(|entry| entry.line.as_str()).collect::<Vec<_>>().join("\n")
}

/// Splits a memo into parts of at most a quarter of the agent's context, the oldest first. A growing memo only appends to
/// its last part, so prompts keep their cached prefix.
pub(super) fn parts(memo: &[Entry], agent: Agent, session: &Session<'_>) -> Vec<Vec<Entry>> {
    let budget_tokens = session.context(agent) / 4;
    let mut parts: Vec<Vec<Entry>> = Vec::new();
    let mut used_tokens = 0;
    for entry in memo {
        let tokens = session.caller.tokens().count_tokens(agent, &entry.line) + 1;
        match parts.last_mut() {
            Some(part) if used_tokens + tokens <= budget_tokens => part.push(entry.clone()),
            _ => {
                parts.push(vec![entry.clone()]);
                used_tokens = 0;
            }
        }
        used_tokens += tokens;
    }
    parts
}

/// The latest part of a memo, which is all that fits the memorizer's prompt.
fn latest(memo: &[Entry], session: &Session<'_>) -> Result<String> {
    let mut parts = parts(memo, Agent::Memorizer, session);
    let last = parts.pop().unwrap_or_default();
    if !parts.is_empty() {
        let left_out = memo.len() - last.len();
        session.trace.record(Event::Memo { step: "gam.memorize".into(), entries: memo.len(), left_out })?;
    }
    Ok(render(&last))
}
