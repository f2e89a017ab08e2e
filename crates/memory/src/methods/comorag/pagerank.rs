//! Personalised PageRank over an undirected weighted graph (HippoRAG, section 2.3): the stationary distribution of a
//! walker that follows edges by weight and repeatedly returns to the nodes of the query.

use petgraph::graph::UnGraph;
use petgraph::visit::{EdgeRef, IntoNodeReferences};

/// The share of its time that the walker spends at each node, in the order of the nodes; the shares sum to 1.
///
/// `reset` gives the probability of returning to each node; all nodes are equally likely if it is zero everywhere. With
/// probability `damping` the walker follows an edge. From a node without edges it returns. Parallel edges add up.
pub(super) fn pagerank<N>(graph: &UnGraph<N, f64>, reset: &[f64], damping: f64) -> Vec<f64> {
    let nodes = graph.node_count();
    let total: f64 = reset.iter().sum();
    let home: Vec<f64> = match total > 0.0 {
        true => reset.iter().map(|weight| weight / total).collect(),
        false => vec![1.0 / nodes.max(1) as f64; nodes],
    };
    let degree = |(node, _)| graph.edges(node).map(|edge| *edge.weight()).sum::<f64>();
    let degrees: Vec<f64> = graph.node_references().map(degree).collect();
    let mut rank = home.clone();
    for _ in 0..MAX_STEPS {
        let next = step(graph, &home, &degrees, &rank, damping);
        let change: f64 = next.iter().zip(&rank).map(|(new, old)| (new - old).abs()).sum();
        rank = next;
        if change < TOLERANCE {
            break;
        }
    }
    rank
}

/// The error shrinks by the damping in each step: 64 halvings are the precision of a float.
const MAX_STEPS: usize = 128;
const TOLERANCE: f64 = 1e-15;

fn step<N>(graph: &UnGraph<N, f64>, home: &[f64], degrees: &[f64], rank: &[f64], damping: f64) -> Vec<f64> {
    let stranded: f64 = rank.iter().zip(degrees).filter(|(_, degree)| **degree <= 0.0).map(|(share, _)| share).sum();
    let mut next: Vec<f64> = home.iter().map(|home| (1.0 - damping + damping * stranded) * home).collect();
    for edge in graph.edge_references() {
        let (a, b) = (edge.source().index(), edge.target().index());
        next[b] += damping * rank[a] * edge.weight() / degrees[a];
        if a != b {
            next[a] += damping * rank[b] * edge.weight() / degrees[b];
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// The result of igraph's `personalized_pagerank` (PRPACK); made by `tests/golden/pagerank.py`.
    const GOLDEN: &str = include_str!("../../../tests/golden/pagerank.json");

    #[derive(Deserialize)]
    struct Golden {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        name: String,
        nodes: usize,
        edges: Vec<(u32, u32, f64)>,
        reset: Vec<f64>,
        damping: f64,
        ranks: Vec<f64>,
    }

    fn ranks(nodes: usize, edges: &[(u32, u32, f64)], reset: &[f64], damping: f64) -> Vec<f64> {
        let mut graph = UnGraph::<(), f64>::default();
        let ids: Vec<_> = (0..nodes).map(|_| graph.add_node(())).collect();
        for (a, b, weight) in edges {
            graph.add_edge(ids[*a as usize], ids[*b as usize], *weight);
        }
        pagerank(&graph, reset, damping)
    }

    fn check(name: &str, got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len(), "{name}");
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-9, "{name}: {got} instead of {want}");
        }
    }

    #[test]
    fn ranks_are_those_of_igraph() {
        let golden: Golden = serde_json::from_str(GOLDEN).expect("the golden file has this form");
        assert_eq!(golden.cases.len(), 5);
        for Case { name, nodes, edges, reset, damping, ranks: want } in golden.cases {
            check(&name, &ranks(nodes, &edges, &reset, damping), &want);
        }
    }

    #[test]
    fn parallel_edges_are_one_of_their_sum() {
        let one = ranks(3, &[(0, 1, 2.0), (1, 2, 1.0)], &[1.0, 0.0, 0.0], 0.5);
        check("two of three", &ranks(3, &[(0, 1, 1.5), (1, 2, 1.0), (1, 0, 0.5)], &[1.0, 0.0, 0.0], 0.5), &one);
    }

    #[test]
    fn nodes_without_edges_give_back_what_they_have() {
        check("two alone", &ranks(2, &[], &[1.0, 0.0], 0.5), &[1.0, 0.0]);
        check("no reset", &ranks(2, &[], &[0.0, 0.0], 0.5), &[0.5, 0.5]);
        check("one alone", &ranks(3, &[(0, 1, 1.0)], &[0.0, 0.0, 1.0], 0.5), &[0.0, 0.0, 1.0]);
        check("nobody", &ranks(0, &[], &[], 0.5), &[]);
    }
}
