//! Open information extraction (HippoRAG 2, section 3; appendix B.1): the named entities of each chunk, then the facts in
//! it. All chunks are processed concurrently; each reply is a note on its chunk, durable before the next is read.

use calls::{Agent, Finish, Stability, schema};
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde::Deserialize;
use serde_json::Value;
use store::{Author, Corpus, Layer, PassageId, Writer};

use super::derive::{AT_ONCE, author};
use super::names::normal;
use super::prompts::{ENTITIES, ENTITIES_EXAMPLE, TRIPLES, TRIPLES_EXAMPLE, demonstrated};
use crate::core::error::Result;
use crate::core::origin::dated;
use crate::core::preparation::Progress;
use crate::core::profile::Profile;
use crate::core::prompt::{Input, Instructions, build, string_of};
use crate::core::session::{Ask, Session};

/// The note with the named entities of a chunk: a list of strings as JSON.
pub(super) const ENTITIES_NOTE: &str = "comorag.entities/1";
/// The note with the facts of a chunk: a list of lists of three strings as JSON.
pub(super) const TRIPLES_NOTE: &str = "comorag.triples/1";

/// Tokens of a reply (released code: 2,048).
const MAX_OUTPUT_TOKENS: usize = 2048;
/// Names and facts of one chunk; the paper counts 11 and 14 on average.
const MAX_ITEMS: usize = 64;
/// Words of a name, and of a part of a fact.
const NAME_WORDS: usize = 12;
const PART_WORDS: usize = 20;

/// Subject, predicate, object.
pub(super) type Triple = [String; 3];

/// Requests the entities of all chunks without that note, then the facts of all chunks without that note.
pub(super) async fn extract(
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    for note in [ENTITIES_NOTE, TRIPLES_NOTE] {
        let pending = writer.pending(Layer::Chunk, note)?;
        let step = if note == ENTITIES_NOTE { "naming" } else { "linking" };
        let report = |done| Progress { step, unit: "chunk", done, of: pending.len() };
        let author = author_of(note, session);
        let mut asked = Vec::new();
        for chunk in &pending {
            asked.push((*chunk, dated(*chunk, writer)?, noted_entities(*chunk, writer)?));
        }
        let ask = |(chunk, passage, entities): (PassageId, String, Vec<String>)| async move {
            let found = match note {
                ENTITIES_NOTE => ask_entities(&passage, session).await.map(Value::from),
                _ => ask_triples(&passage, &entities, session).await.map(Value::from),
            };
            (chunk, found)
        };
        if !pending.is_empty() {
            progress(report(0));
        }
        let mut replies = iter(asked.into_iter().map(ask)).buffer_unordered(AT_ONCE);
        let mut done = 0;
        while let Some((chunk, found)) = replies.next().await {
            writer.put_notes(chunk, &[(note, &found?.to_string())], &author)?;
            done += 1;
            progress(report(done));
        }
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedEntities {
    named_entities: Vec<String>,
}

/// An invalid reply has no entities, and one that was cut has those before its end.
async fn ask_entities(passage: &str, session: &Session<'_>) -> Result<Vec<String>> {
    let inputs = vec![Input::new("PASSAGE", Stability::Volatile, passage)];
    let schema = schema::object([("named_entities", items(string_of(NAME_WORDS), session))]);
    let ask = builder("comorag.entities", ENTITIES, ENTITIES_EXAMPLE, inputs, session);
    let reply = session.json_with_ending(ask, schema, |_: &NamedEntities| Ok(())).await?;
    let mut names: Vec<String> = Vec::new();
    for name in reply.map_or_else(Vec::new, |(reply, finish)| complete(reply.named_entities, finish)) {
        let name = name.trim().to_owned();
        if !normal(&name).is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Triples {
    triples: Vec<Vec<String>>,
}

/// An invalid reply has no facts, and one that was cut has those before its end.
async fn ask_triples(passage: &str, entities: &[String], session: &Session<'_>) -> Result<Vec<Vec<String>>> {
    let inputs = vec![
        Input::new("PASSAGE", Stability::Volatile, passage),
        Input::new("NAMED_ENTITIES", Stability::Volatile, Value::from(entities).to_string()),
    ];
    let mut three = schema::array(string_of(PART_WORDS), 3);
    three["minItems"] = 3.into();
    let schema = schema::object([("triples", items(three, session))]);
    let ask = builder("comorag.triples", TRIPLES, TRIPLES_EXAMPLE, inputs, session);
    let reply = session.json_with_ending(ask, schema, |_: &Triples| Ok(())).await?;
    let mut triples: Vec<Vec<String>> = Vec::new();
    for triple in reply.map_or_else(Vec::new, |(reply, finish)| complete(reply.triples, finish)) {
        let triple: Vec<String> = triple.iter().map(|part| part.trim().to_owned()).collect();
        let whole = triple.len() == 3 && triple.iter().all(|part| !normal(part).is_empty());
        if whole && !triples.contains(&triple) {
            triples.push(triple);
        }
    }
    Ok(triples)
}

/// The items of a reply; of one that was cut all but the last, which the model did not complete.
fn complete<T>(mut items: Vec<T>, finish: Finish) -> Vec<T> {
    if finish.is_cut() {
        items.pop();
    }
    items
}

/// The names or facts of a chunk. Small models return an empty list wherever it is allowed, so theirs has an item; a
/// chunk without a name or a fact has none for other models.
fn items(item: Value, session: &Session<'_>) -> Value {
    let items = schema::array(item, MAX_ITEMS);
    match session.profile(Agent::Builder) {
        Profile::Paper => items,
        Profile::Small => schema::at_least_one(items),
    }
}

fn builder(
    step: &'static str,
    instructions: Instructions<'static>,
    example: &str,
    inputs: Vec<Input>,
    session: &Session<'_>,
) -> Ask {
    let max_output_tokens = session.long_output_tokens(Agent::Builder, MAX_OUTPUT_TOKENS);
    let rules = demonstrated(instructions.rules, example, session.profile(Agent::Builder));
    let prompt = build(session.settings.layout, Instructions { rules: &rules, ..instructions }, inputs);
    Ask { agent: Agent::Builder, step, prompt, thinking_tokens: 0, max_output_tokens, draw: 0 }
}

fn noted_entities(chunk: PassageId, corpus: &Corpus) -> Result<Vec<String>> {
    let notes = corpus.notes(chunk)?;
    let note = notes.iter().find(|note| note.name == ENTITIES_NOTE);
    // Notes are written by this file; a damaged one is unreadable.
    Ok(note.and_then(|note| serde_json::from_str(&note.text).ok()).unwrap_or_default())
}

/// The facts of all chunks that have any.
pub(super) fn noted_triples(corpus: &Corpus) -> Result<Vec<(PassageId, Vec<Triple>)>> {
    let notes = corpus.notes_named(Layer::Chunk, TRIPLES_NOTE)?.into_iter();
    let facts = notes.map(|note| (note.passage, serde_json::from_str::<Vec<Triple>>(&note.text).unwrap_or_default()));
    Ok(facts.filter(|(_, triples)| !triples.is_empty()).collect())
}

pub(super) fn author_of(note: &str, session: &Session<'_>) -> Author {
    let (step, instructions, example) = match note {
        ENTITIES_NOTE => ("comorag.entities", ENTITIES, ENTITIES_EXAMPLE),
        _ => ("comorag.triples", TRIPLES, TRIPLES_EXAMPLE),
    };
    let rules = demonstrated(instructions.rules, example, session.profile(Agent::Builder));
    author(step, Instructions { rules: &rules, ..instructions }, Agent::Builder, session)
}
