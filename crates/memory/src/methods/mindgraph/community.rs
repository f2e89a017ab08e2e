//! The graph divided into communities, each small enough for one report (section 3.3: Leiden with at
//! most 10 nodes a community, as in GraphRAG).

use super::graph::{Edge, Graph, Node};
use super::leiden::{Network, leiden};

/// The most nodes of a community that can be split.
const MAX_NODES: usize = 10;

/// The paper fixes a seed and does not say which.
const SEED: u64 = 0xDEAD_BEEF;

/// Some nodes of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Community {
    /// Places in the graph's list of nodes, ascending.
    pub nodes: Vec<usize>,
}

impl Community {
    /// Its nodes.
    pub fn nodes<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a Node> {
        self.nodes.iter().filter_map(|at| graph.nodes.get(*at))
    }

    /// The ids of its first nodes, at most `most`, and the number of further ones.
    pub(super) fn names(&self, graph: &Graph, most: usize) -> String {
        let names: Vec<&str> = self.nodes(graph).map(|node| node.id.as_str()).take(most).collect();
        let more = self.nodes.len() - names.len();
        if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
    }

    /// The edges between its nodes.
    pub fn edges<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a Edge> {
        let has = |id: &str| self.nodes(graph).any(|node| node.id == id);
        graph.edges.iter().filter(move |edge| has(&edge.source) && has(&edge.target))
    }
}

/// The communities of a graph, the largest first, ties by the first node; nodes without edges form the
/// last one.
pub fn communities(graph: &Graph) -> Vec<Community> {
    // Sorted by id, so that the order of insertion has no effect.
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    order.sort_unstable_by_key(|at| &graph.nodes[*at].id);
    let rank = |id: &str| order.binary_search_by_key(&id, |at| graph.nodes[*at].id.as_str()).ok();
    let links = graph.edges.iter().filter_map(|edge| Some((rank(&edge.source)?, rank(&edge.target)?)));
    let network = Network::new(order.len(), links);
    let (alone, linked): (Vec<usize>, Vec<usize>) = (0..network.len()).partition(|node| network.is_isolated(*node));
    let mut communities = Vec::new();
    split(&network, linked, &mut communities);
    let in_graph = |ranks: Vec<usize>| {
        let mut nodes: Vec<usize> = ranks.into_iter().map(|rank| order[rank]).collect();
        nodes.sort_unstable();
        Community { nodes }
    };
    let mut communities: Vec<Community> = communities.into_iter().map(in_graph).collect();
    communities.sort_by_key(|community| (std::cmp::Reverse(community.nodes.len()), community.nodes[0]));
    if !alone.is_empty() {
        communities.push(in_graph(alone));
    }
    communities
}

/// Divides nodes until each community is small enough or Leiden leaves it whole.
fn split(network: &Network, nodes: Vec<usize>, into: &mut Vec<Vec<usize>>) {
    let partition = leiden(&network.part(&nodes), SEED);
    let count = partition.iter().max().map_or(0, |last| last + 1);
    for community in 0..count {
        let members = nodes.iter().zip(&partition).filter(|(_, own)| **own == community).map(|(node, _)| *node);
        let members: Vec<usize> = members.collect();
        if members.len() > MAX_NODES && count > 1 {
            split(network, members, into);
        } else {
            into.push(members);
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{DocId, PassageId};

    use super::super::operation::{Edit, Kind, Operation};
    use super::*;

    /// A graph of `nodes` nodes with these edges.
    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        let name = |node: usize| format!("n{node:03}");
        let node =
            |at| Operation::AddNode { id: name(at), kind: Kind::Entity, content: "x".into(), src: String::new() };
        let edge = |(from, to): &(usize, usize)| Operation::AddEdge {
            source: name(*from),
            target: name(*to),
            relation: "knows".into(),
            src: String::new(),
        };
        let operations = (0..nodes).map(node).chain(edges.iter().map(edge));
        let edits: Vec<Edit> = operations.map(|operation| Edit { operation, place: None, unseen: false }).collect();
        let mut graph = Graph::default();
        assert_eq!(graph.apply(DocId(1), PassageId(1), &edits), Vec::<String>::new());
        graph
    }

    fn found(graph: &Graph) -> Vec<Vec<usize>> {
        communities(graph).into_iter().map(|community| community.nodes).collect()
    }

    fn clique(from: usize, size: usize) -> Vec<(usize, usize)> {
        (from..from + size).flat_map(|a| (from..a).map(move |b| (a, b))).collect()
    }

    #[test]
    fn nodes_without_edges_are_one_community() {
        assert_eq!(found(&graph(0, &[])), Vec::<Vec<usize>>::new());
        assert_eq!(found(&graph(3, &[])), [[0, 1, 2]]);
        assert_eq!(found(&graph(4, &[(3, 1), (2, 2)])), [[1, 3], [0, 2]]);
        let many: Vec<usize> = (0..25).collect();
        assert_eq!(found(&graph(25, &[])), [many], "they cannot be split");
    }

    #[test]
    fn every_node_is_in_one_community_of_ten_at_most() {
        // A ring of cliques with tails.
        let mut edges = Vec::new();
        for ring in 0..12 {
            edges.extend(clique(ring * 7, 5));
            edges.extend([(ring * 7, ring * 7 + 5), (ring * 7 + 5, ring * 7 + 6), (ring * 7, (ring * 7 + 7) % 84)]);
        }
        let communities = found(&graph(90, &edges));
        let mut all: Vec<usize> = communities.iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..90).collect::<Vec<_>>());
        assert!(communities.iter().all(|nodes| nodes.len() <= MAX_NODES), "{communities:?}");
        assert_eq!(communities.last().map(Vec::as_slice), Some(&[84, 85, 86, 87, 88, 89][..]));
    }

    #[test]
    fn the_karate_club_is_split_at_its_best() {
        // graspologic splits the 11 into 7 and 4, modularity 0.0936; an exhaustive search finds 5 and 6 with 0.1049.
        let mut communities = Vec::new();
        split(&crate::methods::mindgraph::leiden::tests::karate(), (0..34).collect(), &mut communities);
        let mut sizes: Vec<usize> = communities.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [2, 2, 5, 5, 6, 6, 8]);
    }

    #[test]
    fn what_cannot_be_split_stays_whole() {
        let communities = found(&graph(14, &clique(0, 14)));
        assert_eq!(communities, [(0..14).collect::<Vec<_>>()]);
    }

    #[test]
    fn the_order_of_edges_does_not_count() {
        let edges: Vec<(usize, usize)> = [clique(0, 8), clique(8, 8), clique(16, 8), vec![(0, 8), (8, 16)]].concat();
        let turned: Vec<(usize, usize)> = edges.iter().rev().map(|(a, b)| (*b, *a)).collect();
        assert_eq!(found(&graph(24, &edges)), found(&graph(24, &turned)));
        assert_eq!(found(&graph(24, &edges)).len(), 3);
    }
}
