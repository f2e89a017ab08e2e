//! Search in the graph: low-level keywords find entities and the relations on them, high-level keywords find relations
//! and the entities at their ends, and both name turns.

use std::collections::{BTreeSet, HashMap};

use calls::{Agent, Stability, schema};
use serde::Deserialize;
use store::{Corpus, Digest, Hit, PassageId};

use super::graph::{Described, Graph};
use super::prompts::KEYWORDS;
use super::{KINDS, vectors};
use crate::core::error::Result;
use crate::core::library::Library;
use crate::core::prompt::{Input, phrase_of};
use crate::core::refusal::is_nothing;
use crate::core::session::Session;
use crate::core::trace::Event;
use crate::methods::memcot::agent::agent_ask;

/// Turns for each entity or relation, of which half are taken (LightRAG's `related_chunk_number`).
const RELATED_CHUNKS: usize = 5;

/// The graph with the vectors of its entities and relations.
pub(in crate::methods::memcot) struct Lightrag {
    graph: Graph,
    entities: Vec<(usize, Vec<f32>)>,
    relations: Vec<(usize, Vec<f32>)>,
}

/// Keywords of each level, and words of one.
const MAX_KEYWORDS: usize = 8;
const KEYWORD_WORDS: usize = 12;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keywords {
    high_level_keywords: Vec<String>,
    low_level_keywords: Vec<String>,
}

impl Lightrag {
    pub fn open(corpus: &Corpus, session: &Session<'_>) -> Result<Lightrag> {
        let graph = Graph::of(corpus)?;
        let [entities, relations] = graph.texts();
        let entities = placed(KINDS[0], &entities, corpus, session)?;
        let relations = placed(KINDS[1], &relations, corpus, session)?;
        Ok(Lightrag { graph, entities, relations })
    }

    /// The `k` turns that the graph leads to.
    pub async fn search(
        &self,
        query: &str,
        k: usize,
        library: &Library<'_>,
        session: &Session<'_>,
    ) -> Result<Vec<Hit>> {
        let Keywords { high_level_keywords: high, low_level_keywords: low } = keywords(query, session).await?;
        let (low, high) = (low.join(", "), high.join(", "));
        let found = vectors([low.as_str(), high.as_str(), query].into_iter(), session).await?;
        let [low_vector, high_vector, query_vector] = &found[..] else { return Ok(Vec::new()) };
        let (entities, relations) = self.walk(low_vector, high_vector, k);

        let chunks_of_entities = entities.iter().flat_map(|place| &self.graph.entities[*place].chunks);
        let of_entities: BTreeSet<PassageId> = chunks_of_entities.copied().collect();
        let chunks_of_relations = relations.iter().flat_map(|place| &self.graph.relations[*place].chunks);
        let of_relations: BTreeSet<PassageId> =
            chunks_of_relations.copied().filter(|chunk| !of_entities.contains(chunk)).collect();
        let pick = |chunks, of: usize| library.nearest_among(query_vector, RELATED_CHUNKS * of / 2, chunks);
        let lists = [pick(&of_entities, entities.len())?, pick(&of_relations, relations.len())?];
        let mut hits = round_robin(&lists);
        hits.truncate(k);
        let event = Event::Search {
            tool: "lightrag".to_owned(),
            queries: vec![query.to_owned(), low, high],
            hits: hits.iter().map(Into::into).collect(),
        };
        session.trace.record(event)?;
        Ok(hits)
    }

    /// Entities and relations matched by keywords, the local ones (by entities) and the global ones (by relations)
    /// alternating.
    fn walk(&self, low: &[f32], high: &[f32], k: usize) -> (Vec<usize>, Vec<usize>) {
        let local_entities = nearest(low, &self.entities, k);
        let mut local_relations = Vec::new();
        for relation in local_entities.iter().flat_map(|place| &self.graph.entities[*place].relations) {
            if !local_relations.contains(relation) {
                local_relations.push(*relation);
            }
        }
        local_relations.sort_by_key(|relation| std::cmp::Reverse(self.graph.rank(*relation)));
        let global_relations = nearest(high, &self.relations, k);
        let ends = global_relations.iter().flat_map(|place| self.graph.relations[*place].ends);
        let global_entities: Vec<usize> = ends.collect();
        (round_robin(&[local_entities, global_entities]), round_robin(&[local_relations, global_relations]))
    }
}

/// The vectors of some texts, by their places.
fn placed(kind: &str, texts: &[Described], corpus: &Corpus, session: &Session<'_>) -> Result<Vec<(usize, Vec<f32>)>> {
    let places: HashMap<Digest, usize> = texts.iter().enumerate().map(|(place, text)| (text.key, place)).collect();
    let known: HashMap<_, _> = corpus.derived(kind)?.into_iter().map(|derived| (derived.id, derived.key)).collect();
    let vectors = corpus.derived_vectors(kind, session.embedder.name())?.into_iter();
    Ok(vectors.filter_map(|(id, vector)| Some((*places.get(known.get(&id)?)?, vector))).collect())
}

/// The keywords of a query; a query without any is its own.
async fn keywords(query: &str, session: &Session<'_>) -> Result<Keywords> {
    let inputs = vec![Input::new("QUERY", Stability::Volatile, query)];
    let ask = agent_ask(Agent::Researcher, "memcot.keywords", KEYWORDS, inputs, 0, session);
    let list = || schema::array(phrase_of(KEYWORD_WORDS), MAX_KEYWORDS);
    let schema = schema::object([("high_level_keywords", list()), ("low_level_keywords", list())]);
    let mut keywords: Keywords = session.json(ask, schema, |_| Ok(())).await?.unwrap_or_default();
    let tells = |word: &String| !is_nothing(word);
    keywords.high_level_keywords.retain(tells);
    keywords.low_level_keywords.retain(tells);
    if keywords.high_level_keywords.is_empty() && keywords.low_level_keywords.is_empty() {
        keywords.low_level_keywords.push(query.to_owned());
        keywords.high_level_keywords.push(query.to_owned());
    }
    Ok(keywords)
}

/// The `k` nearest by cosine; none without keywords, whose vector is zero.
fn nearest(query: &[f32], of: &[(usize, Vec<f32>)], k: usize) -> Vec<usize> {
    if query.iter().all(|number| *number == 0.0) {
        return Vec::new();
    }
    let cosine = |vector: &[f32]| -> f32 { query.iter().zip(vector).map(|(a, b)| a * b).sum() };
    let mut scored: Vec<(f32, usize)> = of.iter().map(|(place, vector)| (cosine(vector), *place)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().take(k).map(|(_, place)| place).collect()
}

/// The first of each list, then the second of each, and so on, each item once.
fn round_robin<T: PartialEq + Copy>(lists: &[Vec<T>; 2]) -> Vec<T> {
    let deepest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut merged = Vec::new();
    for item in (0..deepest).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank))) {
        if !merged.contains(item) {
            merged.push(*item);
        }
    }
    merged
}
