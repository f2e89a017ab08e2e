//! The memorizer: an abstract of each page, in order (section 2.2.1, equations 1 and 2).

use std::collections::BTreeMap;

use calls::{Agent, Stability};
use store::{Author, Corpus, DocId, Document, Layer, Note, Passage, PassageId, Writer};

use super::prompts::{MEMORIZE, NO_MEMORY};
use crate::core::embed::ABSTRACT;
use crate::core::error::Result;
use crate::core::origin::{dated, in_brackets, shows_paths, unstated};
use crate::core::preparation::Progress;
use crate::core::profile::Profile;
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
    if pending.is_empty() {
        return Ok(());
    }
    let author = author(session);
    let report = |done| Progress { step: "memorising", unit: "page", done, of: pending.len() };
    // Abstracts that were stored before, and the memo of the pages before the present one.
    let mut stored = memo(writer)?.into_iter().peekable();
    let mut before = Parts::new(Agent::Memorizer, session);
    for (done, page) in pending.iter().enumerate() {
        progress(report(done));
        while let Some(entry) = stored.next_if(|entry| entry.page < *page) {
            before.push(entry);
        }
        let text = dated(*page, writer)?;
        let context = latest(&before, session)?;
        let abstract_ = one_line(&session.text(ask(&context, &text, session)).await?);
        writer.put_notes(*page, &[(ABSTRACT, &abstract_)], &author)?;
        before.push(Entry::new(*page, &abstract_));
    }
    progress(report(pending.len()));
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

impl Entry {
    fn new(page: PassageId, abstract_: &str) -> Entry {
        Entry { page, line: format!("Page {page}: {abstract_}") }
    }
}

/// The memo: the abstracts of all pages in order.
fn memo(corpus: &Corpus) -> Result<Vec<Entry>> {
    let notes = corpus.notes_named(Layer::Page, ABSTRACT)?;
    Ok(notes.into_iter().map(|note| Entry::new(note.passage, &note.text)).collect())
}

/// The memo as the researcher reads it. In the paper profile a line also has the path of the document where there are
/// several, and the time of the page unless the abstract states it.
pub(super) fn located_memo(corpus: &Corpus, session: &Session<'_>) -> Result<Vec<Entry>> {
    if session.profile(Agent::Researcher) == Profile::Small {
        return memo(corpus);
    }
    let pages: BTreeMap<PassageId, Passage> =
        corpus.passages(Layer::Page)?.into_iter().map(|page| (page.id, page)).collect();
    let mut documents: BTreeMap<DocId, Document> = BTreeMap::new();
    if shows_paths(Agent::Researcher, corpus, session)? {
        documents.extend(corpus.documents()?.into_iter().map(|document| (document.id, document)));
    }
    let entry = |note: Note| {
        let page = pages.get(&note.passage);
        let document = page.and_then(|page| documents.get(&page.document));
        let time = page.and_then(|page| unstated(page.meta.time.as_deref(), &note.text));
        let origin = in_brackets(document, time).map_or_else(String::new, |origin| format!(" {origin}"));
        Entry { line: format!("Page {}{origin}: {}", note.passage, note.text), page: note.passage }
    };
    Ok(corpus.notes_named(Layer::Page, ABSTRACT)?.into_iter().map(entry).collect())
}

/// A memo as text for a prompt.
pub(super) fn render(memo: &[Entry]) -> String {
    if memo.is_empty() {
        return NO_MEMORY.to_owned();
    }
    memo.iter().map(|entry| entry.line.as_str()).collect::<Vec<_>>().join("\n")
}

/// A memo in parts of at most a quarter of the agent's context, the oldest first. A growing memo only appends to its last
/// part, so prompts keep their cached prefix.
struct Parts<'a> {
    agent: Agent,
    session: &'a Session<'a>,
    all: Vec<Vec<Entry>>,
    /// Tokens of the last part.
    used_tokens: usize,
}

impl<'a> Parts<'a> {
    fn new(agent: Agent, session: &'a Session<'a>) -> Self {
        Self { agent, session, all: Vec::new(), used_tokens: 0 }
    }

    /// Appends an entry, whose tokens are counted once.
    fn push(&mut self, entry: Entry) {
        let tokens = self.session.caller.tokens().count_tokens(self.agent, &entry.line) + 1;
        let budget_tokens = self.session.context(self.agent) / 4;
        match self.all.last_mut() {
            Some(part) if self.used_tokens + tokens <= budget_tokens => part.push(entry),
            _ => {
                self.all.push(vec![entry]);
                self.used_tokens = 0;
            }
        }
        self.used_tokens += tokens;
    }
}

/// Splits a memo into parts, as [`Parts`] does.
pub(super) fn parts(memo: &[Entry], agent: Agent, session: &Session<'_>) -> Vec<Vec<Entry>> {
    let mut parts = Parts::new(agent, session);
    for entry in memo {
        parts.push(entry.clone());
    }
    parts.all
}

/// The latest part of a memo, which is all that fits the memorizer's prompt.
fn latest(memo: &Parts<'_>, session: &Session<'_>) -> Result<String> {
    let Some((last, earlier)) = memo.all.split_last() else { return Ok(render(&[])) };
    if !earlier.is_empty() {
        let left_out: usize = earlier.iter().map(Vec::len).sum();
        let entries = left_out + last.len();
        session.trace.record(Event::Memo { step: "gam.memorize".into(), entries, left_out })?;
    }
    Ok(render(last))
}
