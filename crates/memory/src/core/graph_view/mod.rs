//! A view of a graph, whichever method made it: nodes, edges and the spans of the documents that they come from; the whole
//! graph, or the neighbourhood of a node.

mod format;
mod kind;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use store::{Corpus, DocId, PassageId, Span};

use crate::core::error::Result;

pub use format::Format;
pub(crate) use format::paths;
pub use kind::GraphKind;

/// A view of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphView {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Passages that the method has read for it.
    pub read: usize,
    /// Passages of the corpus.
    pub of: usize,
}

/// A node: an entity, event, claim or the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: String,
    pub kind: String,
    pub content: String,
    pub sources: Vec<Source>,
    /// Edges at this node in the whole graph, also those that a partial view leaves out.
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

/// The origin of a node or an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub document: DocId,
    pub passage: PassageId,
    /// The span in the document; none if its quote was not found.
    pub span: Option<Span>,
    /// How the span was found: `exact`, `normalised` or `fuzzy` for a quote, `unverified` for a quote that was not found,
    /// `passage` where only the passage is known.
    pub how: &'static str,
}

/// A cache of passages as sources.
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

impl GraphView {
    /// A view that counts the edges of every node.
    pub(crate) fn new(mut nodes: Vec<Node>, edges: Vec<Edge>, read: usize, of: usize) -> GraphView {
        let mut degrees: HashMap<&str, usize> = HashMap::new();
        for end in edges.iter().flat_map(|edge| [&edge.source, &edge.target]) {
            *degrees.entry(end).or_default() += 1;
        }
        nodes.iter_mut().for_each(|node| node.degree = degrees.get(node.id.as_str()).copied().unwrap_or(0));
        GraphView { nodes, edges, read, of }
    }

    /// At most `most` nodes, those with the most edges, and the edges between them.
    #[must_use]
    pub fn largest(&self, most: usize) -> GraphView {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.nodes[*at].degree));
        self.part(order.into_iter().take(most).collect())
    }

    /// The neighbourhood of a node: at most `most` nodes within `hops` edges, the nearest first; none for an unknown id.
    pub fn around(&self, id: &str, hops: usize, most: usize) -> Option<GraphView> {
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

    /// The induced subgraph of some nodes, in their order.
    fn part(&self, wanted: BTreeSet<usize>) -> GraphView {
        let nodes: Vec<Node> = wanted.into_iter().map(|at| self.nodes[at].clone()).collect();
        let ids: BTreeSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
        let between = |edge: &&Edge| ids.contains(edge.source.as_str()) && ids.contains(edge.target.as_str());
        let edges = self.edges.iter().filter(between).cloned().collect();
        GraphView { nodes, edges, read: self.read, of: self.of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes a to f: a star around b with a tail, and one by itself.
    fn star() -> GraphView {
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
        GraphView::new(('a'..='f').map(node).collect(), edges.map(edge).to_vec(), 1, 2)
    }

    fn shown(drawing: &GraphView) -> (String, usize) {
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
}
