//! A graph as a prompt has room for it.

use calls::Role;

use super::graph::{Edge, Graph, Node, object};
use crate::error::Result;
use crate::session::Session;
use crate::trace::Event;

/// Tokens that joining lines may add to each.
const SEAM_TOKENS: usize = 2;

/// The graph within `budget_tokens`. Where it is larger, the oldest nodes go without their contents, then the oldest edges
/// are left out, and the trace says how many; the ids of all nodes are always there.
pub(super) fn view(
    step: &'static str,
    role: Role,
    graph: &Graph,
    budget_tokens: usize,
    session: &Session<'_>,
) -> Result<String> {
    let tokens = |line: &str| session.caller.count_tokens(role, line) + SEAM_TOKENS;
    let whole = graph.to_string();
    if tokens(&whole) <= budget_tokens {
        return Ok(whole);
    }
    let mut nodes: Vec<String> = graph.nodes.iter().map(Node::line).collect();
    let edges: Vec<String> = graph.edges.iter().map(Edge::line).collect();
    let edge_tokens: Vec<usize> = edges.iter().map(|edge| tokens(edge)).collect();
    let mut used_tokens = nodes.iter().map(|node| tokens(node)).sum::<usize>() + edge_tokens.iter().sum::<usize>();
    // The frame around the lines.
    used_tokens += tokens(&object(&[], &[]));
    let mut bare = 0;
    while used_tokens > budget_tokens && bare < nodes.len() {
        let line = graph.nodes[bare].bare_line();
        used_tokens = used_tokens + tokens(&line) - tokens(&nodes[bare]);
        nodes[bare] = line;
        bare += 1;
    }
    let mut left_out = 0;
    while used_tokens > budget_tokens && left_out < edges.len() {
        used_tokens -= edge_tokens[left_out];
        left_out += 1;
    }
    session.trace.record(Event::Graph {
        step: step.to_owned(),
        budget_tokens,
        nodes: nodes.len(),
        without_content: bare,
        edges: edges.len(),
        edges_left_out: left_out,
    })?;
    Ok(object(&nodes, &edges[left_out..]))
}
