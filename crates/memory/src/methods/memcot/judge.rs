//! The judge (section 4.3, equations 6 and 7): which turns are useful, whether they are enough, and the next queries.

use calls::{Agent, Stability, schema};
use serde::Deserialize;
use store::PassageId;

use super::agent::agent_ask;
use super::long_term::LongTerm;
use super::perception::{Focus, Perceived, ids, only, reader, thinking, useful};
use super::prompts::JUDGE;
use super::short_term::{Action, ShortTerm};
use super::view::{Form, show};
use crate::core::error::Result;
use crate::core::prompt::{Input, phrase_of};
use crate::core::session::Session;

/// Queries of one step (released code: 2).
pub(super) const MAX_QUERIES: usize = 2;

/// Words of a query.
const QUERY_WORDS: usize = 60;

/// The judge's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Places of the turns to keep.
    pub useful: Vec<usize>,
    pub can_answer: bool,
    pub action: Action,
    pub queries: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    #[allow(dead_code)] // for readers of the trace
    thinking: String,
    useful_id: Vec<i64>,
    can_answer: bool,
    action: Action,
    new_queries: Vec<String>,
}

/// Judges the memory together with the turns that were just perceived. A `complaint` about the queries marks a retry. None if
/// the reply is invalid.
pub(super) async fn judge(
    focus: Focus<'_>,
    perceived: &Perceived,
    complaint: Option<&str>,
    short_term: &ShortTerm,
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<Option<Verdict>> {
    let mut failed = short_term.trajectory();
    if let Some(complaint) = complaint {
        failed = format!("{failed}\n{complaint}");
    }
    let draw = 2 * focus.step + u64::from(complaint.is_some());
    let ask = |shown: &str| {
        let mut inputs = focus.inputs();
        let shown = if shown.is_empty() { "Nothing." } else { shown };
        inputs.push(Input::new("NEW_INFORMATION", Stability::Volatile, shown));
        inputs.push(Input::new("FAILED_QUERIES", Stability::Volatile, failed.as_str()));
        agent_ask(Agent::Judge, "memcot.judge", JUDGE, inputs, draw, session)
    };
    let new: Vec<usize> = perceived.places.iter().filter(|place| !focus.facts.contains(place)).copied().collect();
    let view = show(&new, Form::Timed, reader(&ask(""), session), memory, session)?;
    let mut ids = [ids(focus.known, memory), ids(&view, memory)].concat();
    ids.sort_unstable();
    let schema = schema::object([
        ("thinking", thinking()),
        ("useful_id", useful(&ids)),
        ("can_answer", schema::boolean()),
        ("action", serde_json::json!({ "enum": ["Break", "Delete"] })),
        ("new_queries", schema::array(phrase_of(QUERY_WORDS), MAX_QUERIES)),
    ]);
    let reply = session.json(ask(&view.text), schema, |reply: &Reply| only(&ids, &reply.useful_id)).await?;
    Ok(reply.map(|reply| Verdict {
        useful: reply.useful_id.iter().filter_map(|id| memory.timeline.place(PassageId(*id))).collect(),
        can_answer: reply.can_answer,
        action: reply.action,
        queries: reply.new_queries,
    }))
}
