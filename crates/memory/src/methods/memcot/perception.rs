//! Multi-view perception of the long-term memory (section 4.2, equation 8): zoom-in, zoom-out, panoramic view.

use calls::{Agent, Stability, schema};
use serde::Deserialize;
use serde_json::Value;
use store::PassageId;

use super::agent::agent_ask;
use super::long_term::LongTerm;
use super::options::Options;
use super::prompts::{ZOOM_IN, ZOOM_OUT};
use super::short_term::from_both_ends;
use super::view::{Form, Reader, View, show};
use super::visual;
use crate::core::error::Result;
use crate::core::evidence::budget;
use crate::core::prompt::{Input, Instructions};
use crate::core::session::{Ask, Session};

/// The target of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Focus<'a> {
    pub question: &'a str,
    /// q: the current query.
    pub queries: &'a [String],
    /// Places of the turns in memory.
    pub facts: &'a [usize],
    /// The memory as all agents of a step read it.
    pub known: &'a View,
    /// From 0, so that the same prompt in another step may have another answer.
    pub step: u64,
}

impl Focus<'_> {
    /// The queries, one a line.
    pub fn listed(self) -> String {
        self.queries.iter().map(|query| format!("- {query}")).collect::<Vec<_>>().join("\n")
    }

    /// The inputs with which the prompts of all agents of a step begin.
    pub fn inputs(self) -> Vec<Input> {
        let known = if self.known.places.is_empty() { "Nothing yet." } else { &self.known.text };
        vec![
            Input::new("QUERY", Stability::Volatile, self.question),
            Input::new("SEARCH_QUERIES", Stability::Volatile, self.listed()),
            Input::new("KNOWN_INFORMATION", Stability::Volatile, known),
        ]
    }
}

/// The result of perception: the useful turns, the best first, and what is still missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Perceived {
    pub places: Vec<usize>,
    pub missing: String,
}

/// Zoom-in over the retrieved turns, zoom-out around its results, and the panoramic view where a picture is shown.
pub(super) async fn perceive(
    focus: Focus<'_>,
    retrieved: &[usize],
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<Perceived> {
    let mut perceived = zoom_in(focus, retrieved, memory, session).await?;
    if perceived.places.is_empty() {
        return Ok(perceived);
    }
    let (wide, view) = zoom_out(focus, &perceived.places, memory, session).await?;
    let seen = visual::ground(&view.places, memory, session)?;
    for place in wide.places.into_iter().chain(seen) {
        if !perceived.places.contains(&place) {
            perceived.places.push(place);
        }
    }
    if !wide.missing.is_empty() {
        perceived.missing = wide.missing;
    }
    Ok(perceived)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoomIn {
    #[allow(dead_code)] // for readers of the trace
    thinking: String,
    missing_information: String,
    useful_ids: Vec<i64>,
}

/// Which of the K nearest turns are useful?
async fn zoom_in(
    focus: Focus<'_>,
    retrieved: &[usize],
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<Perceived> {
    let step = "memcot.zoom_in";
    let ask = |results: &str| ask(step, ZOOM_IN, focus, ("RETRIEVED", results), session);
    let view = show(retrieved, Form::Ranked, reader(&ask(""), session), memory, session)?;
    if view.places.is_empty() {
        return Ok(Perceived::default());
    }
    let ids = ids(&view, memory);
    let schema = schema::object([
        ("thinking", thinking()),
        ("missing_information", missing_information()),
        ("useful_ids", useful(&ids)),
    ]);
    let check = |reply: &ZoomIn| only(&ids, &reply.useful_ids);
    let reply = session.json(ask(&view.text), schema, check).await?;
    Ok(reply.map_or_else(Perceived::default, |reply| picked(&reply.useful_ids, reply.missing_information, memory)))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoomOut {
    #[allow(dead_code)] // for readers of the trace
    thinking: String,
    #[allow(dead_code)] // likewise
    thinking_choice: String,
    missing_information: String,
    useful_ids: Vec<i64>,
}

/// Which of the turns around those are useful? Also returns the shown turns.
async fn zoom_out(
    focus: Focus<'_>,
    anchors: &[usize],
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<(Perceived, View)> {
    let step = "memcot.zoom_out";
    let ask = |windows: &str| ask(step, ZOOM_OUT, focus, ("CONTEXT_WINDOWS", windows), session);
    let around = memory.timeline.around(anchors, session.settings.options::<Options>().window);
    let view = show(&around, Form::Sessions, reader(&ask(""), session), memory, session)?;
    if view.places.is_empty() {
        return Ok((Perceived::default(), view));
    }
    let ids = ids(&view, memory);
    let schema = schema::object([
        ("thinking", thinking()),
        ("thinking_choice", thinking()),
        ("missing_information", missing_information()),
        ("useful_ids", useful(&ids)),
    ]);
    let check = |reply: &ZoomOut| only(&ids, &reply.useful_ids);
    let reply = session.json(ask(&view.text), schema, check).await?;
    let picked =
        reply.map_or_else(Perceived::default, |reply| picked(&reply.useful_ids, reply.missing_information, memory));
    Ok((picked, view))
}

fn ask(
    step: &'static str,
    instructions: Instructions,
    focus: Focus<'_>,
    (name, shown): (&'static str, &str),
    session: &Session<'_>,
) -> Ask {
    let mut inputs = focus.inputs();
    inputs.push(Input::new(name, Stability::Volatile, shown));
    agent_ask(Agent::Researcher, step, instructions, inputs, focus.step, session)
}

/// The memory in the prompts of a step: at most a quarter of the smaller context of its two agents.
pub(super) fn known(facts: &[usize], memory: &LongTerm<'_>, session: &Session<'_>) -> Result<View> {
    if facts.is_empty() {
        return Ok(View::default());
    }
    let smaller = session.context(Agent::Researcher).min(session.context(Agent::Judge));
    let reader = Reader { step: "memcot.known", agent: Agent::Researcher, budget_tokens: smaller / 4 };
    show(&from_both_ends(facts), Form::Timed, reader, memory, session)
}

/// Room for turns in a prompt that has all other parts.
pub(super) fn reader(bare: &Ask, session: &Session<'_>) -> Reader {
    let budget_tokens = budget(bare.agent, session.prompt_tokens(bare), bare.reply_tokens(), session);
    Reader { step: bare.step, agent: bare.agent, budget_tokens }
}

/// Reasoning before a decision. Two of these, what is missing and the ids fit into a reply of 1,024 tokens, and the prompts
/// name a limit in words that is reached before this one.
pub(super) fn thinking() -> Value {
    schema::string(1600)
}

fn missing_information() -> Value {
    schema::string(400)
}

pub(super) fn useful(ids: &[i64]) -> Value {
    schema::array_of(ids.iter().copied(), ids.len())
}

pub(super) fn ids(view: &View, memory: &LongTerm<'_>) -> Vec<i64> {
    let mut ids: Vec<i64> = view.places.iter().map(|place| memory.timeline.id(*place).0).collect();
    ids.sort_unstable();
    ids
}

/// The error text for ids that were not shown.
pub(super) fn only(shown: &[i64], useful: &[i64]) -> std::result::Result<(), String> {
    match useful.iter().find(|id| !shown.contains(id)) {
        Some(id) => Err(format!("{id} was not shown")),
        None => Ok(()),
    }
}

fn picked(ids: &[i64], missing: String, memory: &LongTerm<'_>) -> Perceived {
    let mut places = Vec::new();
    for place in ids.iter().filter_map(|id| memory.timeline.place(PassageId(*id))) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Perceived { places, missing }
}
