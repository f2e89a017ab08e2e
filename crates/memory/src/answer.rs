//! The last call: an answer for the person who asked.

use calls::{Call, Reply, Role, Stability, Usage};
use store::{Corpus, PassageId};

use crate::cite::{Citation, cite};
use crate::error::Result;
use crate::mindgraph::Confidence;
use crate::options;
use crate::prompt::{Input, Instructions, build, in_form};
use crate::session::{Ask, Session};
use crate::settings::Method;

/// An answer, where it comes from, and what it cost.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Answer {
    pub answer: String,
    pub method: Method,
    /// The model that wrote it.
    pub model: String,
    pub embedder: String,
    pub citations: Vec<Citation>,
    /// How sure the model is, where the method asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The ids of the nodes that the answer rests on, where the method answers from a graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cited_nodes: Vec<String>,
    pub usage: Usage,
}

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

/// The rules before those for another form of answers, and the cue after them.
const BEFORE_FORM: &str = "Read CONTEXT and answer QUESTION.\n- Use only what CONTEXT says.";
const CUE_OF_FORM: &str = "Answer QUESTION from CONTEXT, in the form that is asked for.";

/// Tokens that an answer may have (GAM's client: 256).
const MOST_OUTPUT_TOKENS: usize = 256;

/// Citations given with an answer.
pub(crate) const MOST_CITATIONS: usize = 3;

/// The question to the responder, with `context` in it.
pub(crate) fn question(question: &str, context: &str, stability: Stability, session: &Session<'_>) -> Ask {
    let settings = &session.settings;
    let mut inputs =
        vec![Input::new("CONTEXT", stability, context), Input::new("QUESTION", Stability::Volatile, question)];
    inputs.extend(options::input(settings));
    let max_output_tokens = session.output_tokens(Role::Responder, MOST_OUTPUT_TOKENS);
    let prompt = match settings.answer_rules {
        _ if !settings.options.is_empty() => {
            let rules = in_form(CHOOSE.rules, "the answer", settings);
            build(settings.layout, Instructions { rules: &rules, ..CHOOSE }, inputs)
        }
        Some(form) => {
            let rules = format!("{BEFORE_FORM}\n{form}");
            build(settings.layout, Instructions { rules: &rules, cue: CUE_OF_FORM, ..ANSWER }, inputs)
        }
        None => build(settings.layout, ANSWER, inputs),
    };
    Ask { role: Role::Responder, step: "answer", prompt, max_output_tokens, draw: 0 }
}

/// Asks the responder and cites what its answer rests on among `pages`.
pub(crate) async fn respond(
    asked: &str,
    ask: Ask,
    pages: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Answer> {
    let settings = &session.settings;
    // A letter is handed on with its option, once it is whole.
    let on_text = session.on_text.clone().filter(|_| settings.options.is_empty());
    let reply = session.send(Call { on_text, ..session.call(ask, options::shape(settings, &[])) }).await?;
    let answer = cited(asked, reply, pages, corpus, session)?;
    if let Some(on_text) = session.on_text.as_ref().filter(|_| !settings.options.is_empty()) {
        on_text.send(&answer.answer);
    }
    Ok(answer)
}

/// The responder's reply with the places among `pages` on which it rests.
pub(crate) fn cited(
    asked: &str,
    reply: Reply,
    pages: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Answer> {
    let answer = options::with_text(&reply.text, &session.settings);
    Ok(Answer {
        citations: cite(asked, &answer, pages, MOST_CITATIONS, corpus)?,
        answer,
        method: session.settings.method,
        model: reply.model,
        embedder: session.embedder.name().to_owned(),
        confidence: None,
        cited_nodes: Vec::new(),
        usage: session.trace.usage(),
    })
}
