//! A question of a conversation, rewritten so that it is understood without the turns before it.

use calls::{Agent, Stability, schema};
use serde::Deserialize;

use crate::core::error::Result;
use crate::core::profile::Profile;
use crate::core::prompt::{Input, Instructions, build, phrase_of};
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub question: String,
    pub answer: String,
}

const REWRITE: Instructions<'static> = Instructions {
    task: "You rewrite the last question of a conversation so that it is understood alone.",
    rules: "\
Read CONVERSATION and QUESTION.
- Replace words of QUESTION that refer to CONVERSATION (he, she, it, they, there, then, \"and the other?\") with the names that they mean.
- Change nothing else. If QUESTION is understood alone, repeat it word for word.
- Do not answer it. Use the language of QUESTION. It has at most 60 words.",
    cue: "Rewrite QUESTION so that it is understood alone.",
};

const STEP: &str = "follow_up.rewrite";

const MAX_WORDS: usize = 60;

/// Turns that are read: what a question refers to is rarely further back.
const MAX_TURNS: usize = 4;

#[derive(Deserialize)]
struct Rewritten {
    question: String,
}

/// The question with what it refers to in the latest turns, which come in order. Models of the small profile rewrite badly,
/// so with them the question is as it was.
///
/// # Errors
/// If a call fails.
pub async fn standalone(question: &str, turns: &[Turn], session: &Session<'_>) -> Result<String> {
    let agent = Agent::Researcher;
    let latest = latest(turns, agent, session);
    if latest.is_empty() || session.profile(agent) == Profile::Small {
        return Ok(question.to_owned());
    }
    let left_out = turns.len() - latest.len();
    session.trace.record(Event::Memo { step: STEP.into(), entries: turns.len(), left_out })?;
    let inputs = vec![
        Input::new("CONVERSATION", Stability::AppendOnly, latest.join("\n")),
        Input::new("QUESTION", Stability::Volatile, question),
    ];
    let prompt = build(session.settings.layout, REWRITE, inputs);
    let max_output_tokens = session.output_tokens(agent, 0);
    let ask = Ask { agent, step: STEP, prompt, thinking_tokens: 0, max_output_tokens, draw: 0 };
    let form = schema::object([("question", phrase_of(MAX_WORDS))]);
    let reply: Option<Rewritten> = session.json_if_it_fits(ask, form, |_| Ok(())).await?;
    let rewritten = reply.map(|reply| reply.question.trim().to_owned()).filter(|text| !text.is_empty());
    Ok(rewritten.unwrap_or_else(|| question.to_owned()))
}

/// The latest turns that fit into a quarter of the context, as text, in order.
fn latest(turns: &[Turn], agent: Agent, session: &Session<'_>) -> Vec<String> {
    let mut budget_tokens = session.context(agent) / 4;
    let mut texts = Vec::new();
    for turn in turns.iter().rev().take(MAX_TURNS) {
        let text = format!("Q: {}\nA: {}", turn.question, turn.answer);
        let tokens = session.caller.tokens().count_tokens(agent, &text) + 1;
        if tokens > budget_tokens {
            break;
        }
        budget_tokens -= tokens;
        texts.push(text);
    }
    texts.reverse();
    texts
}
