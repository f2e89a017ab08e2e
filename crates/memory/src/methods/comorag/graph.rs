//! The graph of the veridical layer (HippoRAG 2, section 3): entities and chunks, joined by facts, by mention and by
//! similarity. It is built from the store for each question.

use std::collections::{BTreeMap, HashMap};

use petgraph::graph::{NodeIndex, UnGraph};
use serde_json::json;
use store::{Corpus, Hit, Layer, PassageId};

use super::entities::{ENTITY, FACT, parts};
use super::extract::Triple;
use super::mentions::{Mentioned, mentioned};
use super::pagerank::pagerank;
use super::synonyms::{Pair, pairs};
use super::vectors::{dot, min_max};
use crate::core::error::Result;

/// A fact joins its ends from each side, as does similarity; a mention counts once.
const SIDES: f64 = 2.0;
/// Weight of the chunks in the walker's reset distribution.
const CHUNK_WEIGHT: f64 = 0.05;
const DAMPING: f64 = 0.5;
/// Facts that are offered to the filter.
const MAX_FACTS: usize = 5;

/// The graph of entities, facts and chunks.
#[derive(Debug)]
pub(super) struct Web {
    graph: UnGraph<(), f64>,
    facts: Vec<Fact>,
    chunks: Vec<(PassageId, NodeIndex)>,
    /// Chunks that each entity is in.
    mentions: HashMap<NodeIndex, usize>,
}

#[derive(Debug)]
struct Fact {
    /// In the form of the filter's demonstration: a JSON list.
    text: String,
    ends: [NodeIndex; 2],
    vector: Vec<f32>,
}

/// A candidate fact for a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    place: usize,
    pub text: String,
    /// From 0, the least similar of all facts, to 1.
    score: f32,
}

impl Web {
    /// Reads the layer as the store holds it.
    pub fn open(corpus: &Corpus, vector_name: &str) -> Result<Web> {
        let whole = |fact: Mentioned<String>| {
            Some(Mentioned { what: parts(&fact.what)?, vector: fact.vector, chunks: fact.chunks })
        };
        let facts: Vec<Mentioned<Triple>> =
            mentioned(FACT, corpus, vector_name)?.into_iter().filter_map(whole).collect();
        let chunks: Vec<PassageId> = corpus.passages(Layer::Chunk)?.into_iter().map(|chunk| chunk.id).collect();
        let entities = mentioned(ENTITY, corpus, vector_name)?;
        Ok(Web::of(&entities, facts, &chunks, &pairs(corpus, &entities, vector_name)))
    }

    fn of(entities: &[Mentioned<String>], facts: Vec<Mentioned<Triple>>, chunks: &[PassageId], alike: &[Pair]) -> Web {
        let mut graph = UnGraph::default();
        let nodes: Vec<NodeIndex> = entities.iter().map(|_| graph.add_node(())).collect();
        let chunks: Vec<(PassageId, NodeIndex)> = chunks.iter().map(|chunk| (*chunk, graph.add_node(()))).collect();
        let node_of_chunk: HashMap<PassageId, NodeIndex> = chunks.iter().copied().collect();
        let node_of: HashMap<&str, NodeIndex> =
            entities.iter().map(|entity| entity.what.as_str()).zip(nodes.iter().copied()).collect();
        let mut weights: BTreeMap<(NodeIndex, NodeIndex), f64> = BTreeMap::new();
        let mut join = |a: NodeIndex, b: NodeIndex, weight: f64| {
            if a != b {
                *weights.entry((a.min(b), a.max(b))).or_default() += weight;
            }
        };
        for (entity, node) in entities.iter().zip(&nodes) {
            let known = entity.chunks.iter().filter_map(|chunk| node_of_chunk.get(chunk));
            known.for_each(|chunk| join(*node, *chunk, 1.0));
        }
        let mut kept = Vec::new();
        for Mentioned { what: [subject, predicate, object], vector, chunks } in facts {
            let ends = [node_of.get(subject.as_str()), node_of.get(object.as_str())];
            let [Some(a), Some(b)] = ends else { continue };
            join(*a, *b, SIDES * chunks.len() as f64);
            let text = json!([subject, predicate, object]).to_string();
            kept.push(Fact { text, ends: [*a, *b], vector });
        }
        for (a, b, likeness) in alike {
            join(nodes[*a], nodes[*b], f64::from(*likeness));
        }
        for ((a, b), weight) in weights {
            graph.add_edge(a, b, weight);
        }
        let mentions = nodes.into_iter().zip(entities.iter().map(|entity| entity.chunks.len())).collect();
        Web { graph, facts: kept, chunks, mentions }
    }

    /// The facts nearest to a query, nearest first.
    pub fn nearest_facts(&self, query: &[f32]) -> Vec<Candidate> {
        let cosines: Vec<f32> = self.facts.iter().map(|fact| dot(query, &fact.vector)).collect();
        let scored = self.facts.iter().zip(min_max(&cosines)).enumerate();
        let mut candidates: Vec<Candidate> =
            scored.map(|(place, (fact, score))| Candidate { place, text: fact.text.clone(), score }).collect();
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        candidates.truncate(MAX_FACTS);
        candidates
    }

    /// All chunks by the stationary probability of a walker that returns to the ends of the kept facts and, with a low
    /// weight, to the chunks that are near to the query (`near`, from 0 to 1).
    pub fn rank(&self, kept: &[Candidate], near: &HashMap<PassageId, f32>) -> Vec<Hit> {
        let mut reset = vec![0.0; self.graph.node_count()];
        let mut counts: BTreeMap<NodeIndex, (f64, f64)> = BTreeMap::new();
        for candidate in kept {
            for end in self.facts[candidate.place].ends {
                let (sum, count) = counts.entry(end).or_default();
                *sum += f64::from(candidate.score) / self.mentions[&end].max(1) as f64;
                *count += 1.0;
            }
        }
        for (end, (sum, count)) in counts {
            reset[end.index()] = sum / count;
        }
        for (chunk, node) in &self.chunks {
            reset[node.index()] = CHUNK_WEIGHT * f64::from(near.get(chunk).copied().unwrap_or(0.0));
        }
        let ranks = pagerank(&self.graph, &reset, DAMPING);
        let mut hits: Vec<(f64, PassageId)> =
            self.chunks.iter().map(|(chunk, node)| (ranks[node.index()], *chunk)).collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        hits.into_iter().map(|(rank, passage)| Hit { passage, score: rank as f32 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::comorag::synonyms::synonyms;

    fn mentioned<T>(what: T, vector: [f32; 2], chunks: &[i64]) -> Mentioned<T> {
        Mentioned { what, vector: vector.to_vec(), chunks: chunks.iter().copied().map(PassageId).collect() }
    }

    fn web() -> Web {
        let entity = |name: &str, vector, chunks: &[i64]| mentioned(name.to_owned(), vector, chunks);
        let fact = |parts: [&str; 3], vector, chunks: &[i64]| mentioned(parts.map(str::to_owned), vector, chunks);
        let entities = [
            entity("ada", [1.0, 0.0], &[1, 2]),
            entity("adah", [0.8, 0.6], &[3]),
            entity("tom", [0.0, 1.0], &[2]),
            entity("x", [0.0, 1.0], &[1]),
        ];
        let facts = vec![
            fact(["ada", "married", "tom"], [1.0, 0.0], &[2]),
            fact(["ada", "kept", "x"], [0.6, 0.8], &[1]),
            fact(["ada", "met", "tom"], [0.0, 1.0], &[2]),
            fact(["ada", "knew", "nobody here"], [0.0, 1.0], &[2]),
            fact(["ada", "is", "ada"], [-1.0, 0.0], &[1]),
        ];
        Web::of(&entities, facts, &[1, 2, 3].map(PassageId), &synonyms(&entities))
    }

    #[test]
    fn edges_are_facts_mentions_and_likeness() {
        let web = web();
        assert_eq!(web.graph.node_count(), 7);
        let edges: Vec<(usize, usize, f64)> = web
            .graph
            .edge_indices()
            .map(|edge| {
                let (a, b) = web.graph.edge_endpoints(edge).expect("the edge is there");
                (a.index(), b.index(), (web.graph[edge] * 1e6).round() / 1e6)
            })
            .collect();
        let want = [
            // ada and adah are similar, from both sides.
            (0, 1, 1.6),
            // Two facts in one chunk each, from both sides.
            (0, 2, 4.0),
            (0, 3, 2.0),
            (0, 4, 1.0),
            (0, 5, 1.0),
            (1, 6, 1.0),
            // "x" is too short to search for synonyms, but can be found as one.
            (2, 3, 1.0),
            (2, 5, 1.0),
            (3, 4, 1.0),
        ];
        assert_eq!(edges, want);
        assert_eq!(web.facts.len(), 4, "a fact whose end is unknown is left out");
    }

    #[test]
    fn facts_are_scored_from_0_to_1() {
        let scores: Vec<(String, f32)> =
            web().nearest_facts(&[1.0, 0.0]).into_iter().map(|fact| (fact.text, fact.score)).collect();
        let want = [("married", "tom", 1.0), ("kept", "x", 0.8), ("met", "tom", 0.5), ("is", "ada", 0.0)];
        assert_eq!(
            scores,
            want.map(|(relation, object, score)| (format!(r#"["ada","{relation}","{object}"]"#), score))
        );
    }

    #[test]
    fn chunks_are_ranked_from_where_the_facts_point() {
        let web = web();
        let facts = web.nearest_facts(&[1.0, 0.0]);
        let order = |kept: &[Candidate], near: &[(i64, f32)]| -> Vec<i64> {
            let near = near.iter().map(|(chunk, score)| (PassageId(*chunk), *score)).collect();
            web.rank(kept, &near).into_iter().map(|hit| hit.passage.0).collect()
        };
        // Tom is in chunk 2 only, so the fact about him leads there.
        assert_eq!(order(&facts[..1], &[])[0], 2);
        assert_eq!(order(&facts[1..2], &[])[0], 1);
        assert_eq!(order(&[], &[(3, 1.0)])[0], 3);
    }
}
