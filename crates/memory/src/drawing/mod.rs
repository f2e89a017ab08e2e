//! A graph as people look at it, whichever method has made it: nodes, edges, and the places in the documents from which they
//! come; the whole of it, or the neighbourhood of a node.

mod form;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use store::{Corpus, DocId, PassageId, Span};

use crate::error::Result;
use crate::mindgraph::{self, Target};
use crate::{comorag, memcot};

pub use form::Form;

/// Whose graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// MindGraph's concept graph.
    #[default]
    Mindgraph,
    /// ComoRAG's entities and facts (the veridical layer).
    Comorag,
    /// The entities and relations of MemCoT's LightRAG store.
    Lightrag,
}

/// A graph to look at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drawing {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Passages that the method has read for it.
    pub read: usize,
    /// Passages that there are to read.
    pub of: usize,
}

/// A piece of knowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: String,
    pub kind: String,
    pub content: String,
    pub sources: Vec<Source>,
    /// Edges that end at it, those included that are not drawn.
    pub degree: usize,
}

/// A relation from one node to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub source: String,
    pub target: String,
    pub relation: String,
    pub sources: Vec<Source>,
}

/// Where something comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub document: DocId,
    pub passage: PassageId,
    /// The place in the document; none if what it quotes was found nowhere.
    pub span: Option<Span>,
    /// How well the place is known: `exact`, `normalised` or `fuzzy` for a quote, `unverified` for one that was not found,
    /// `passage` where only the passage is known.
    pub how: &'static str,
}

/// The graph that a method has made of a corpus, as far as it is made; the question is MindGraph's.
///
/// # Errors
/// If the store cannot be read.
pub fn draw(corpus: &Corpus, kind: Kind, question: Option<&str>) -> Result<Drawing> {
    match kind {
        Kind::Mindgraph => mindgraph::drawing(corpus, &question.map_or(Target::Any, Target::question)),
        Kind::Comorag => comorag::drawing(corpus),
        Kind::Lightrag => memcot::lightrag::drawing(corpus),
    }
}

/// Passages as sources, each read once.
pub(crate) struct Passages<'a> {
    corpus: &'a Corpus,
    known: HashMap<PassageId, Source>,
}

impl<'a> Passages<'a> {
    pub fn of(corpus: &'a Corpus) -> Passages<'a> {
        Passages { corpus, known: HashMap::new() }
    }

    pub fn sources(&mut self, passages: &[PassageId]) -> Result<Vec<Source>> {
        passages.iter().map(|id| self.source(*id)).collect()
    }

    fn source(&mut self, id: PassageId) -> Result<Source> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let passage = self.corpus.passage(id)?;
        let source = Source { document: passage.document, passage: id, span: Some(passage.span), how: "passage" };
        self.known.insert(id, source.clone());
        Ok(source)
    }
}

impl Drawing {
    /// Counts the edges of every node.
    pub(crate) fn new(mut nodes: Vec<Node>, edges: Vec<Edge>, read: usize, of: usize) -> Drawing {
        let mut degrees: HashMap<&str, usize> = HashMap::new();
        for end in edges.iter().flat_map(|edge| [&edge.source, &edge.target]) {
            *degrees.entry(end).or_default() += 1;
        }
        nodes.iter_mut().for_each(|node| node.degree = degrees.get(node.id.as_str()).copied().unwrap_or(0));
        Drawing { nodes, edges, read, of }
    }

    /// The nodes with the most edges, `most` of them at most, and what holds between them.
    #[must_use]
    pub fn largest(&self, most: usize) -> Drawing {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.nodes[*at].degree));
        self.part(order.into_iter().take(most).collect())
    }

    /// A node and those that so many edges or fewer lie between, the nearest first, `most` of them at most; none if there
    /// is no such node.
    pub fn around(&self, id: &str, hops: usize, most: usize) -> Option<Drawing> {
        let place: HashMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.id.as_str(), at)).collect();
        let mut neighbours: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for edge in &self.edges {
            if let (Some(a), Some(b)) = (place.get(edge.source.as_str()), place.get(edge.target.as_str())) {
                neighbours.entry(*a).or_default().insert(*b);
                neighbours.entry(*b).or_default().insert(*a);
            }
        }
        let centre = *place.get(id)?;
        let (mut found, mut queue) = (BTreeSet::from([centre]), VecDeque::from([(centre, 0)]));
        while let Some((at, distance)) = queue.pop_front() {
            let mut next: Vec<usize> = neighbours.get(&at).into_iter().flatten().copied().collect();
            next.sort_by_key(|at| std::cmp::Reverse(self.nodes[*at].degree));
            for next in next {
                if distance < hops && found.len() < most && found.insert(next) {
                    queue.push_back((next, distance + 1));
                }
            }
        }
        Some(self.part(found))
    }

    /// Some of the nodes, in their order, and the edges between them.
    fn part(&self, wanted: BTreeSet<usize>) -> Drawing {
        let nodes: Vec<Node> = wanted.into_iter().map(|at| self.nodes[at].clone()).collect();
        let ids: BTreeSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
        let between = |edge: &&Edge| ids.contains(edge.source.as_str()) && ids.contains(edge.target.as_str());
        let edges = self.edges.iter().filter(between).cloned().collect();
        Drawing { nodes, edges, read: self.read, of: self.of }
    }
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Mindgraph, Kind::Comorag, Kind::Lightrag];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Mindgraph => "mindgraph",
            Kind::Comorag => "comorag",
            Kind::Lightrag => "lightrag",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let known = Kind::ALL.into_iter().find(|kind| kind.to_string() == name);
        known.ok_or_else(|| format!("`{name}` is not one of mindgraph, comorag, lightrag"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes a to f: a star around b with a tail, and one by itself.
    fn star() -> Drawing {
        let node = |id: char| Node {
            id: id.into(),
            kind: "entity".into(),
            content: String::new(),
            sources: Vec::new(),
            degree: 0,
        };
        let edge = |(from, to): (char, char)| Edge {
            source: from.into(),
            target: to.into(),
            relation: "knows".into(),
            sources: Vec::new(),
        };
        let edges = [('a', 'b'), ('c', 'b'), ('b', 'd'), ('d', 'e'), ('b', 'b')];
        Drawing::new(('a'..='f').map(node).collect(), edges.map(edge).to_vec(), 1, 2)
    }

    fn shown(drawing: &Drawing) -> (String, usize) {
        (drawing.nodes.iter().map(|node| node.id.as_str()).collect(), drawing.edges.len())
    }

    #[test]
    fn a_neighbourhood_is_bounded_by_steps_and_by_number() {
        let check = |id: &str, hops: usize, most: usize, nodes: &str, edges: usize| {
            let part = star().around(id, hops, most).expect("the node is there");
            assert_eq!(shown(&part), (nodes.to_owned(), edges), "{id} {hops} {most}");
        };
        check("b", 1, 9, "abcd", 4);
        check("e", 1, 9, "de", 1);
        check("e", 2, 9, "bde", 3);
        check("e", 9, 9, "abcde", 5);
        check("b", 1, 2, "bd", 2);
        check("f", 3, 9, "f", 0);
        check("b", 0, 9, "b", 1);
        assert!(star().around("g", 1, 9).is_none());
    }

    #[test]
    fn the_largest_nodes_come_first() {
        let degrees: Vec<usize> = star().nodes.iter().map(|node| node.degree).collect();
        assert_eq!(degrees, [1, 5, 1, 2, 1, 0]);
        assert_eq!(shown(&star().largest(2)), ("bd".to_owned(), 2));
        assert_eq!(star().largest(9), star());
        assert_eq!(star().largest(2).nodes[1].degree, 2, "edges that are not drawn count");
    }

    #[test]
    fn kinds_have_names() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("gam".parse::<Kind>().is_err());
    }
}
