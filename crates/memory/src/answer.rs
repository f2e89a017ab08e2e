//! The last call: an answer for the person who asked.

use calls::{Call, Reply, Role, Shape, Stability, Usage};
use store::{Corpus, PassageId};

use crate::cite::{Citation, cite};
use crate::error::Result;
use crate::mindgraph::Confidence;
use crate::prompt::{Input, Instructions, build};
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

/// The rules before those for another form of answers, and the cue after them.
const BEFORE_FORM: &str = "Read CONTEXT and answer QUESTION.\n- Use only what CONTEXT says.";
const CUE_OF_FORM: &str = "Answer QUESTION from CONTEXT, in the form that is asked for.";

/// Tokens that an answer may have (GAM's client: 256).
const MOST_OUTPUT_TOKENS: usize = 256;

/// Citations given with an answer.
pub(crate) const MOST_CITATIONS: usize = 3;

/// The question to the responder, with `context` in it.
pub(crate) fn question(question: &str, context: &str, stability: Stability, session: &Session<'_>) -> Ask {
    let inputs = vec![Input::new("CONTEXT", stability, context), Input::new("QUESTION", Stability::Volatile, question)];
    let max_output_tokens = session.output_tokens(Role::Responder, MOST_OUTPUT_TOKENS);
    let rules = session.settings.answer_rules.map(|form| format!("{BEFORE_FORM}\n{form}"));
    let instructions = rules.as_deref().map_or(ANSWER, |rules| Instructions { rules, cue: CUE_OF_FORM, ..ANSWER });
    let prompt = build(session.settings.layout, instructions, inputs);
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
    let call = Call { on_text: session.on_text.clone(), ..session.call(ask, Shape::Text) };
    let reply = session.send(call).await?;
    cited(asked, reply, pages, corpus, session)
}

/// The responder's reply with the places among `pages` on which it rests.
pub(crate) fn cited(
    asked: &str,
    reply: Reply,
    pages: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Answer> {
    let answer = reply.text.trim().to_owned();
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
