//! Retrieval in the veridical layer (HippoRAG 2, section 3): the facts nearest to the query, a filter, a walk over the
//! graph from what the filter keeps; without any fact, the chunks nearest to the query.

use std::collections::HashMap;

use calls::{Agent, Stability, schema};
use serde::Deserialize;
use store::{Corpus, DenseIndex, Hit, Layer, PassageId};

use super::graph::{Candidate, Web};
use super::pack::Piece;
use super::prompts::{FILTER, FILTER_EXAMPLES, demonstrated};
use super::vectors::min_max;
use crate::core::error::Result;
use crate::core::origin::{dated, dated_with_path};
use crate::core::prompt::{Input, Instructions, build};
use crate::core::session::{Ask, Session};

/// Facts that the filter may keep.
const MAX_KEPT: usize = 4;
/// Tokens of the filter's reply (released code: 512).
const MAX_OUTPUT_TOKENS: usize = 512;

/// The chunks and their graph.
pub(super) struct Veridical<'a> {
    corpus: &'a Corpus,
    chunks: DenseIndex,
    count: usize,
    web: Web,
}

impl<'a> Veridical<'a> {
    pub fn open(corpus: &'a Corpus, vector_name: &str) -> Result<Veridical<'a>> {
        Ok(Veridical {
            corpus,
            chunks: DenseIndex::open(corpus, Layer::Chunk, vector_name)?,
            count: corpus.count(Layer::Chunk)?,
            web: Web::open(corpus, vector_name)?,
        })
    }

    /// The chunks relevant to a query, best first.
    pub async fn search(&self, query: &str, vector: &[f32], session: &Session<'_>) -> Result<Vec<Hit>> {
        let near = self.chunks.search(vector, self.count)?;
        let kept = filter(query, self.web.nearest_facts(vector), session).await?;
        if kept.is_empty() {
            return Ok(near);
        }
        let scores = min_max(&near.iter().map(|hit| hit.score).collect::<Vec<_>>());
        let near: HashMap<PassageId, f32> = near.iter().map(|hit| hit.passage).zip(scores).collect();
        Ok(self.web.rank(&kept, &near))
    }

    /// A chunk as evidence, with the path of its document if paths are shown.
    pub fn piece(&self, chunk: PassageId, with_path: bool) -> Result<Piece> {
        let shown = if with_path { dated_with_path } else { dated };
        let text = shown(chunk, self.corpus)?.trim().to_owned();
        Ok(Piece { id: chunk.0, place: (chunk.0, 0), text, sources: vec![chunk] })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    fact: Vec<usize>,
}

/// The candidates that the filter keeps for a query; none if the reply is invalid.
async fn filter(query: &str, candidates: Vec<Candidate>, session: &Session<'_>) -> Result<Vec<Candidate>> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let numbered = (1..).zip(&candidates).map(|(number, fact): (usize, _)| format!("{number}. {}", fact.text));
    let inputs = vec![
        Input::new("QUESTION", Stability::Volatile, query),
        Input::new("FACTS", Stability::Volatile, numbered.collect::<Vec<_>>().join("\n")),
    ];
    let rules = demonstrated(FILTER.rules, FILTER_EXAMPLES, session.profile(Agent::Judge));
    let ask = Ask {
        agent: Agent::Judge,
        step: "comorag.filter",
        prompt: build(session.settings.layout, Instructions { rules: &rules, ..FILTER }, inputs),
        thinking_tokens: 0,
        max_output_tokens: session.output_tokens(Agent::Judge, MAX_OUTPUT_TOKENS),
        draw: 0,
    };
    let most = candidates.len();
    let schema = schema::object([("fact", schema::array_of(1..=most, MAX_KEPT.min(most)))]);
    let check = |kept: &Kept| match kept.fact.iter().find(|number| !(1..=most).contains(*number)) {
        Some(number) => Err(format!("there is no fact {number}")),
        None => Ok(()),
    };
    let kept = session.json(ask, schema, check).await?.map_or_else(Vec::new, |kept: Kept| kept.fact);
    let of_place = |place: usize, fact| kept.contains(&place).then_some(fact);
    Ok((1..).zip(candidates).filter_map(|(place, fact)| of_place(place, fact)).collect())
}
