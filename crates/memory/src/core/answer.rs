//! The last call of a method: the answer to the question.

use calls::{Call, Reply, Role, Stability, Usage};
use store::{Corpus, PassageId};

use crate::core::choices;
use crate::core::cite::{Citation, cite};
use crate::core::error::Result;
use crate::core::method::Method;
use crate::core::named::named;
use crate::core::prompt::{Input, Instructions, build, in_form};
use crate::core::run::Prepared;
use crate::core::session::{Ask, Session};

/// An answer with its citations and its cost.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Answer {
    pub answer: String,
    pub method: &'static dyn Method,
    /// The responder's model.
    pub model: String,
    pub embedder: String,
    pub citations: Vec<Citation>,
    /// The model's confidence, where the method asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The ids of the nodes that support the answer, where the method answers from a graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cited_nodes: Vec<String>,
    pub usage: Usage,
    /// How much of the corpus was prepared for the method that was asked for, if not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
    /// How the answer differs from what was asked for, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A model's own confidence in its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    High,
    Medium,
    Low,
}

named!(Confidence: High = "high", Medium = "medium", Low = "low");

const ANSWER: Instructions = Instructions {
    task: "You answer questions from a text that is given to you.",
    rules: "\
Read CONTEXT and answer QUESTION in one or two short sentences.
- Use only what CONTEXT says. Prefer its own words.
- If CONTEXT does not hold the answer, say that it is not there.
- Give the answer alone: no introduction, no explanation of how you found it.",
    cue: "Answer QUESTION from CONTEXT in one short sentence.",
};

const CHOOSE: Instructions = Instructions {
    task: "You choose the right one of several answers from a text that is given to you.",
    rules: "\
Read CONTEXT and answer QUESTION with one of OPTIONS.
- Use only what CONTEXT says. Choose the option that it supports best.
- Give the letter of that option in square brackets alone.",
    cue: "Answer QUESTION from CONTEXT with the letter of one of OPTIONS.",
};

/// The rules before those of [`crate::Settings::answer_rules`], and the cue after them.
const BEFORE_FORM: &str = "Read CONTEXT and answer QUESTION.\n- Use only what CONTEXT says.";
const CUE_OF_FORM: &str = "Answer QUESTION from CONTEXT, in the form that is asked for.";

/// Tokens of an answer (GAM's released client: 256).
const MAX_OUTPUT_TOKENS: usize = 256;

/// Citations of an answer.
pub(crate) const MAX_CITATIONS: usize = 3;

/// The responder's prompt for a question, with `context` in it.
pub(crate) fn question(question: &str, context: &str, stability: Stability, session: &Session<'_>) -> Ask {
    let settings = &session.settings;
    let mut inputs =
        vec![Input::new("CONTEXT", stability, context), Input::new("QUESTION", Stability::Volatile, question)];
    inputs.extend(choices::input(settings));
    let max_output_tokens = session.output_tokens(Role::Responder, MAX_OUTPUT_TOKENS);
    let prompt = match settings.answer_rules {
        _ if !settings.choices.is_empty() => {
            let rules = in_form(CHOOSE.rules, "the answer", settings);
            build(settings.layout, Instructions { rules: &rules, ..CHOOSE }, inputs)
        }
        Some(form) => {
            let rules = format!("{BEFORE_FORM}\n{form}");
            build(settings.layout, Instructions { rules: &rules, cue: CUE_OF_FORM, ..ANSWER }, inputs)
        }
        None => build(settings.layout, ANSWER, inputs),
    };
    Ask { role: Role::Responder, step: "answer", prompt, thinking_tokens: 0, max_output_tokens, draw: 0 }
}

/// Calls the responder and cites the sentences of `pages` that support its answer.
pub(crate) async fn respond(
    asked: &str,
    ask: Ask,
    pages: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Answer> {
    let settings = &session.settings;
    // The letter of an option is streamed with the option's text, once the reply is complete.
    let on_text = session.on_text.clone().filter(|_| settings.choices.is_empty());
    let reply = session.send(Call { on_text, ..session.call(ask, choices::shape(settings)) }).await?;
    let answer = cited(asked, reply, pages, corpus, session)?;
    if let Some(on_text) = session.on_text.as_ref().filter(|_| !settings.choices.is_empty()) {
        on_text.send(&answer.answer);
    }
    Ok(answer)
}

/// The responder's reply, with citations from `pages`.
pub(crate) fn cited(
    asked: &str,
    reply: Reply,
    pages: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Answer> {
    let answer = choices::with_text(&reply.text, &session.settings);
    Ok(Answer {
        citations: cite(asked, &answer, pages, MAX_CITATIONS, corpus)?,
        answer,
        method: session.settings.method,
        model: reply.model,
        embedder: session.embedder.name().to_owned(),
        confidence: None,
        cited_nodes: Vec::new(),
        usage: session.trace.usage(),
        prepared: None,
        note: None,
    })
}
