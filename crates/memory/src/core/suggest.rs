//! Questions that the documents of a corpus answer, for readers who do not know them yet.

use std::collections::HashSet;

use calls::{Agent, Stability, schema};
use futures_util::future::try_join_all;
use serde::Deserialize;
use store::{Corpus, DocId, Layer, Passage, PassageId};

use crate::core::error::Result;
use crate::core::origin::dated;
use crate::core::prompt::{Input, Instructions, build, phrase_of};
use crate::core::session::{Ask, Session};
use crate::core::study::is_about;
use crate::grounding::content_words;

/// A question, and the page that it was made from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Suggestion {
    pub question: String,
    pub document: DocId,
    pub page: PassageId,
}

const SUGGEST: Instructions<'static> = Instructions {
    task: "You write questions for readers who do not know a text yet.",
    rules: "\
Read TEXT and write one question that TEXT answers.
- Ask about a person, a thing, a place, a time or a reason. Name it as TEXT does.
- The question is understood without TEXT: it has no \"he\", \"she\", \"it\" or \"the text\".
- It has at most 16 words and ends with a question mark. Use the language of TEXT.",
    cue: "Write one short question that TEXT answers.",
};

const MAX_WORDS: usize = 16;

/// Questions of one corpus.
const MAX_SUGGESTIONS: usize = 4;

/// Pages that are read: more than questions, since some questions are left out.
const MAX_PAGES: usize = 6;

#[derive(Deserialize)]
struct Question {
    question: String,
}

/// Makes questions from pages that are spread evenly over the corpus: one call a page, all at once.
///
/// Questions that share less than half of their words with their page are left out, so there may be none.
///
/// # Errors
/// If the store cannot be read or a call fails.
pub async fn suggest(corpus: &Corpus, session: &Session<'_>) -> Result<Vec<Suggestion>> {
    let pages = corpus.passages(Layer::Page)?;
    let count = pages.len().min(MAX_PAGES);
    let spread = (0..count).map(|at| &pages[(2 * at + 1) * pages.len() / (2 * count)]);
    let questions = try_join_all(spread.map(|page| question(page, corpus, session))).await;
    session.caller.close_workflow(session.workflow);
    let mut known = HashSet::new();
    let mut suggestions: Vec<Suggestion> = questions?.into_iter().flatten().collect();
    suggestions.retain(|suggestion| known.insert(content_words(&suggestion.question)));
    // One of each document first.
    let mut documents = HashSet::new();
    suggestions.sort_by_key(|suggestion| !documents.insert(suggestion.document));
    suggestions.truncate(MAX_SUGGESTIONS);
    Ok(suggestions)
}

async fn question(page: &Passage, corpus: &Corpus, session: &Session<'_>) -> Result<Option<Suggestion>> {
    let text = dated(page.id, corpus)?;
    let agent = Agent::Responder;
    let prompt = build(session.settings.layout, SUGGEST, vec![Input::new("TEXT", Stability::Volatile, text.as_str())]);
    let max_output_tokens = session.output_tokens(agent, 0);
    let ask = Ask { agent, step: "suggest", prompt, thinking_tokens: 0, max_output_tokens, draw: 0 };
    let form = schema::object([("question", phrase_of(MAX_WORDS))]);
    let reply: Option<Question> = session.json_if_it_fits(ask, form, |_| Ok(())).await?;
    let question = reply.map(|reply| reply.question.trim().to_owned()).filter(|question| is_about(question, &text));
    Ok(question.map(|question| Suggestion { question, document: page.document, page: page.id }))
}
