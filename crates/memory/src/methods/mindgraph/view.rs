//! A graph rendered within the budget of a prompt.

use super::graph::{Edge, Graph, Node, object};
use crate::core::error::Result;
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

/// The part of a graph that a prompt shows.
pub(super) struct View<'a> {
    pub text: String,
    /// The nodes that are shown: all, or the newest.
    nodes: &'a [Node],
    /// How many of them, the oldest, are shown without their contents.
    without_content: usize,
}

impl<'a> View<'a> {
    /// The ids of those nodes.
    pub fn ids(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.nodes.iter().map(|node| node.id.as_str())
    }

    /// True if the content of a node is shown.
    pub fn describes(&self, id: &str) -> bool {
        self.nodes[self.without_content..].iter().any(|node| node.id == id)
    }
}

/// The graph as the prompt of `ask` can show it within `most_tokens`. In a larger graph the oldest nodes lose their
/// contents, then the oldest edges are left out, then the oldest nodes; the trace says how many.
///
/// Whole prompts are counted, since the tokens of the parts do not add up exactly to those of the whole.
pub(super) fn view<'a>(
    graph: &'a Graph,
    most_tokens: usize,
    ask: impl Fn(&str) -> Ask,
    session: &Session<'_>,
) -> Result<View<'a>> {
    let fits = |text: &str| session.prompt_tokens(&ask(text)) <= most_tokens;
    let whole = graph.to_string();
    if graph.nodes.is_empty() || fits(&whole) {
        return Ok(View { text: whole, nodes: &graph.nodes, without_content: 0 });
    }
    let lines = Lines::of(graph);
    // Leaves out as little as possible, by bisection between an amount that is too small and one that is enough.
    let (mut too_little, mut enough) = (0, lines.cuts());
    while too_little + 1 < enough {
        let middle = usize::midpoint(too_little, enough);
        if fits(&lines.text(&lines.cut(middle))) { enough = middle } else { too_little = middle }
    }
    let cut = lines.cut(enough);
    let bare = ask("");
    session.trace.record(Event::Graph {
        step: bare.step.to_owned(),
        budget_tokens: most_tokens.saturating_sub(session.prompt_tokens(&bare)),
        nodes: graph.nodes.len(),
        without_content: cut.contents,
        edges: graph.edges.len(),
        edges_left_out: cut.edges,
        nodes_left_out: cut.nodes,
    })?;
    let (text, nodes) = (lines.text(&cut), &graph.nodes[cut.nodes..]);
    Ok(View { text, nodes, without_content: cut.contents - cut.nodes })
}

/// The lines of a graph.
struct Lines {
    nodes: Vec<String>,
    bare_nodes: Vec<String>,
    edges: Vec<String>,
}

/// How many contents, edges and nodes are left out, the oldest first.
struct Cut {
    contents: usize,
    edges: usize,
    nodes: usize,
}

impl Lines {
    fn of(graph: &Graph) -> Lines {
        Lines {
            nodes: graph.nodes.iter().map(Node::line).collect(),
            bare_nodes: graph.nodes.iter().map(Node::bare_line).collect(),
            edges: graph.edges.iter().map(Edge::line).collect(),
        }
    }

    /// The contents, edges and nodes that could be left out.
    fn cuts(&self) -> usize {
        2 * self.nodes.len() + self.edges.len()
    }

    /// Leaves out this many things.
    fn cut(&self, most: usize) -> Cut {
        let contents = most.min(self.nodes.len());
        let edges = (most - contents).min(self.edges.len());
        Cut { contents, edges, nodes: most - contents - edges }
    }

    fn text(&self, cut: &Cut) -> String {
        let nodes = [&self.bare_nodes[cut.nodes..cut.contents], &self.nodes[cut.contents..]].concat();
        object(&nodes, &self.edges[cut.edges..])
    }
}
