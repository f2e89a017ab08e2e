//! Entities and relations of every turn: one call, and one more for those that it missed.

use calls::{Agent, Stability, schema};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Author, Corpus, Layer, PassageId, Writer};

use super::prompts::{EXTRACT, GLEAN};
use crate::core::error::Result;
use crate::core::preparation::Progress;
use crate::core::prompt::{Input, phrase_of, string_of};
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;
use crate::methods::memcot::agent::agent_ask;

/// The notes in which the replies of both calls are kept.
pub(super) const NOTES: [&str; 2] = ["lightrag.extract/1", "lightrag.glean/1"];

const STEPS: [&str; 2] = ["memcot.extract", "memcot.glean"];

/// Concurrent calls: enough to fill a batch, few enough that a killed run loses little.
const AT_ONCE: usize = 16;

/// The types of entities (the paper's code).
const TYPES: [&str; 8] = ["Person", "Event", "Location", "Organization", "Activity", "Concept", "Date", "Other"];

/// Entities and relations of one reply at most.
const MOST: usize = 12;

/// Words of a name, of the keywords of a relation, and of a description.
const NAME_WORDS: usize = 12;
const KEYWORDS_WORDS: usize = 24;
const DESCRIPTION_WORDS: usize = 60;

/// The builder's reply about a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extraction {
    pub entities: Vec<Entity>,
    pub relations: Vec<Relation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entity {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Relation {
    pub source: String,
    pub target: String,
    pub keywords: String,
    pub description: String,
}

/// Calls that have not been made.
pub(super) fn pending(corpus: &Corpus) -> Result<usize> {
    Ok(corpus.pending(Layer::Turn, NOTES[0])?.len() + corpus.pending(Layer::Turn, NOTES[1])?.len())
}

/// Makes the calls that have not been made, many at once; each reply is durable when it comes.
pub(super) async fn extract(
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let author = author(session);
    for (pass, note) in NOTES.into_iter().enumerate() {
        let pending = writer.pending(Layer::Turn, note)?;
        let step = ["extracting", "gleaning"][pass];
        let report = |done| Progress { step, unit: "turn", done, of: pending.len() };
        for (done, batch) in pending.chunks(AT_ONCE).enumerate() {
            progress(report(done * AT_ONCE));
            let prompts = batch.iter().map(|turn| Ok((*turn, ask(*turn, pass, writer, session)?)));
            let prompts = prompts.collect::<Result<Vec<_>>>()?;
            let mut replies = stream::iter(prompts)
                .map(async |(turn, ask)| Ok::<_, crate::core::error::MemoryError>((turn, reply(ask, session).await?)))
                .buffer_unordered(AT_ONCE);
            while let Some((turn, extraction)) = replies.try_next().await? {
                writer.put_notes(turn, &[(note, &json!(extraction).to_string())], &author)?;
            }
        }
        if !pending.is_empty() {
            progress(report(pending.len()));
        }
    }
    Ok(())
}

/// The first call about a turn, or the gleaning call, which continues the chat of the first.
fn ask(turn: PassageId, pass: usize, corpus: &Corpus, session: &Session<'_>) -> Result<Ask> {
    let text = corpus.passage_text(turn)?;
    let text = match corpus.passage(turn)?.meta.time {
        Some(time) => format!("({time}) {text}"),
        None => text,
    };
    let inputs = vec![Input::new("TEXT", Stability::Volatile, text)];
    let mut ask = agent_ask(Agent::Builder, STEPS[pass], EXTRACT, inputs, 0, session);
    if pass == 1 {
        let notes = corpus.notes(turn)?;
        let first = notes.into_iter().find(|note| note.name == NOTES[0]).map(|note| note.text);
        ask.prompt = ask.prompt.assistant(first.unwrap_or_default()).user(Stability::Static, GLEAN);
    }
    Ok(ask)
}

/// An invalid reply has no entities, and neither has a turn that is too long for the prompt. Of a reply that was cut what the
/// model had completed is used.
async fn reply(ask: Ask, session: &Session<'_>) -> Result<Extraction> {
    let tokens = session.prompt_tokens(&ask) + ask.max_output_tokens;
    let context_tokens = session.context(ask.agent);
    if tokens > context_tokens {
        let reason = format!("the turn is passed over: {tokens} tokens in a context of {context_tokens}");
        session.trace.record(Event::Fallback { step: ask.step.to_owned(), reason })?;
        return Ok(Extraction::default());
    }
    let entity = schema::object([
        ("name", phrase_of(NAME_WORDS)),
        ("type", json!({ "enum": TYPES })),
        ("description", string_of(DESCRIPTION_WORDS)),
    ]);
    let relation = schema::object([
        ("source", phrase_of(NAME_WORDS)),
        ("target", phrase_of(NAME_WORDS)),
        ("keywords", string_of(KEYWORDS_WORDS)),
        ("description", string_of(DESCRIPTION_WORDS)),
    ]);
    let schema =
        schema::object([("entities", schema::array(entity, MOST)), ("relations", schema::array(relation, MOST))]);
    let reply = session.json_with_ending(ask, schema, |_: &Extraction| Ok(())).await?;
    let Some((mut extraction, finish)) = reply else { return Ok(Extraction::default()) };
    // The last relation, or before there is one the last entity, is incomplete.
    if finish.is_cut() && extraction.relations.pop().is_none() {
        extraction.entities.pop();
    }
    Ok(extraction)
}

/// Who extracts: the model, and the instructions it follows.
pub(super) fn author(session: &Session<'_>) -> Author {
    let prompt = format!("memcot.extract {}", store::Digest::of(&[EXTRACT.task, EXTRACT.rules, EXTRACT.cue, GLEAN]));
    Author { model: session.caller.models().model(Agent::Builder).to_owned(), prompt }
}
