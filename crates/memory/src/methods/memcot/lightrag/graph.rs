//! The extracted entities and relations of all turns, merged by name.

use std::collections::BTreeMap;

use store::{Corpus, Digest, Layer, PassageId};

use super::extract::{Extraction, NOTES};
use crate::core::error::Result;
use crate::core::graph_view::{self, Passages};

/// Entities and the relations between them, in the order in which they were first named.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub entities: Vec<Entity>,
    pub relations: Vec<Relation>,
    names: BTreeMap<String, usize>,
    pairs: BTreeMap<[usize; 2], usize>,
}

#[derive(Debug, Default)]
pub(super) struct Entity {
    name: String,
    descriptions: Vec<String>,
    pub chunks: Vec<PassageId>,
    pub relations: Vec<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Relation {
    pub ends: [usize; 2],
    /// The number of mentions.
    pub weight: usize,
    keywords: Vec<String>,
    descriptions: Vec<String>,
    pub chunks: Vec<PassageId>,
}

/// The embedded form of an entity or a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub key: Digest,
    pub text: String,
    pub chunks: Vec<PassageId>,
}

impl Graph {
    /// Merges the notes on all turns; the same notes always give the same graph.
    pub fn of(corpus: &Corpus) -> Result<Graph> {
        let mut notes = corpus.notes_named(Layer::Turn, NOTES[0])?;
        notes.extend(corpus.notes_named(Layer::Turn, NOTES[1])?);
        notes.sort_by_key(|note| note.passage);
        let mut graph = Graph::default();
        for note in notes {
            // Written by this crate: an unreadable note is from another version and is skipped.
            if let Ok(extraction) = serde_json::from_str(&note.text) {
                graph.add(note.passage, extraction);
            }
        }
        Ok(graph)
    }

    fn add(&mut self, chunk: PassageId, extraction: Extraction) {
        for entity in extraction.entities {
            let Some(place) = self.entity(&entity.name, chunk) else { continue };
            once(&mut self.entities[place].descriptions, entity.description);
        }
        for relation in extraction.relations {
            let ends = (self.entity(&relation.source, chunk), self.entity(&relation.target, chunk));
            let (Some(a), Some(b)) = ends else { continue };
            if a == b {
                continue;
            }
            let ends = [a.min(b), a.max(b)];
            let place = *self.pairs.entry(ends).or_insert(self.relations.len());
            if place == self.relations.len() {
                self.relations.push(Relation { ends, ..Relation::default() });
                ends.iter().for_each(|end| self.entities[*end].relations.push(place));
            }
            let known = &mut self.relations[place];
            known.weight += 1;
            once(&mut known.keywords, relation.keywords);
            once(&mut known.descriptions, relation.description);
            last(&mut known.chunks, chunk);
        }
    }

    /// The place of an entity, which is added if it is new; none for a name without letters or digits.
    fn entity(&mut self, name: &str, chunk: PassageId) -> Option<usize> {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        let key = name.trim_matches(|sign: char| !sign.is_alphanumeric()).to_lowercase();
        if key.is_empty() {
            return None;
        }
        let place = *self.names.entry(key).or_insert(self.entities.len());
        if place == self.entities.len() {
            self.entities.push(Entity { name, ..Entity::default() });
        }
        last(&mut self.entities[place].chunks, chunk);
        Some(place)
    }

    /// The embedded texts: entities with their descriptions, and relations with keywords, ends and descriptions, in the
    /// order of their places.
    pub fn texts(&self) -> [Vec<Described>; 2] {
        let entities =
            self.entities.iter().map(|entity| Described::new(&[&entity.name], &entity.descriptions, &entity.chunks));
        let relations = self.relations.iter().map(|relation| {
            let [source, target] = relation.ends.map(|end| self.entities[end].name.as_str());
            Described::new(&[&relation.keywords.join(", "), source, target], &relation.descriptions, &relation.chunks)
        });
        [entities.collect(), relations.collect()]
    }

    /// A view of the graph, without the progress of its build.
    pub fn drawn(&self, passages: &mut Passages<'_>) -> Result<(Vec<graph_view::Node>, Vec<graph_view::Edge>)> {
        let mut nodes = Vec::new();
        for Entity { name, descriptions, chunks, .. } in &self.entities {
            let (content, sources) = (descriptions.join("\n"), passages.sources(chunks)?);
            nodes.push(graph_view::Node { id: name.clone(), kind: "entity".into(), content, sources, degree: 0 });
        }
        let mut edges = Vec::new();
        for relation in &self.relations {
            let [source, target] = relation.ends.map(|end| self.entities[end].name.clone());
            let sources = passages.sources(&relation.chunks)?;
            edges.push(graph_view::Edge { source, target, relation: relation.keywords.join(", "), sources });
        }
        Ok((nodes, edges))
    }

    /// The weight of an edge: the degrees of its ends, then its number of mentions.
    pub fn rank(&self, relation: usize) -> (usize, usize) {
        let relation = &self.relations[relation];
        let degrees = relation.ends.iter().map(|end| self.entities[*end].relations.len()).sum();
        (degrees, relation.weight)
    }
}

impl Described {
    fn new(head: &[&str], descriptions: &[String], chunks: &[PassageId]) -> Described {
        let lines: Vec<&str> = head.iter().copied().chain(descriptions.iter().map(String::as_str)).collect();
        let text = lines.join("\n");
        Described { key: Digest::of(&[&text]), text, chunks: chunks.to_vec() }
    }
}

/// Adds a turn unless it is the last one; turns arrive in their order.
fn last(chunks: &mut Vec<PassageId>, chunk: PassageId) {
    if chunks.last() != Some(&chunk) {
        chunks.push(chunk);
    }
}

/// Adds the item if it is new.
fn once<T: PartialEq>(all: &mut Vec<T>, new: T) {
    if !all.contains(&new) {
        all.push(new);
    }
}
