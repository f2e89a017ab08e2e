//! Exports of a graph for users and other programs.

use std::collections::BTreeMap;

use serde_json::json;
use store::{Corpus, DocId, Layer};

use super::focus::Target;
use super::graph::{Graph, Node, Source};
use super::journal;
use super::quote::Match;
use crate::core::error::Result;
use crate::core::graph_view::{self, Format, GraphKind, GraphView, paths};

/// The graph of this method.
pub(super) static GRAPH: GraphKind = GraphKind {
    name: "mindgraph",
    view: |corpus, question| view(corpus, &question.map_or(Target::Any, Target::question)),
    export: |corpus, question, format| {
        let graph = journal::graph(corpus, &question.map_or(Target::Any, Target::question))?;
        Ok(export(&graph, format, &paths(corpus)?))
    },
};

/// The graph in a format; `paths` names its documents. JSON includes deleted nodes.
pub fn export(graph: &Graph, format: Format, paths: &BTreeMap<DocId, String>) -> String {
    let view = drawn(graph, graph.blocks);
    match format {
        Format::Json => {
            let deleted = graph.deleted.iter().map(|node| drawn_node(node).json(paths));
            let mut whole = view.json(paths);
            whole["deleted"] = deleted.collect();
            whole["blocks"] = graph.blocks.into();
            whole["skipped_blocks"] = graph.skipped.into();
            whole["digest"] = json!(graph.digest().to_string());
            format!("{whole:#}\n")
        }
        Format::Graphml => view.graphml(paths),
        Format::Dot => view.dot("mindgraph"),
    }
}

/// The graph of a target, for display.
///
/// # Errors
/// If the store cannot be read.
fn view(corpus: &Corpus, target: &Target) -> Result<GraphView> {
    Ok(drawn(&journal::graph(corpus, target)?, corpus.count(Layer::Block)?))
}

fn drawn(graph: &Graph, blocks: usize) -> GraphView {
    let edges = graph.edges.iter().map(|edge| graph_view::Edge {
        source: edge.source.clone(),
        target: edge.target.clone(),
        relation: edge.relation.clone(),
        sources: edge.sources.iter().map(place).collect(),
    });
    GraphView::new(graph.nodes.iter().map(drawn_node).collect(), edges.collect(), graph.blocks, blocks)
}

fn drawn_node(node: &Node) -> graph_view::Node {
    let Node { id, kind, content, sources } = node;
    let sources = sources.iter().map(place).collect();
    graph_view::Node { id: id.clone(), kind: kind.as_str().into(), content: content.clone(), sources, degree: 0 }
}

fn place(source: &Source) -> graph_view::Source {
    let how = match source.place.map(|place| place.how) {
        Some(Match::Exact) => "exact",
        Some(Match::Normalised) => "normalised",
        Some(Match::Fuzzy) => "fuzzy",
        None => "unverified",
    };
    let (document, passage) = (source.document, source.block);
    graph_view::Source { document, passage, span: source.place.map(|place| place.span), how }
}

#[cfg(test)]
mod tests {
    use store::{DocId, PassageId, Span};

    use serde_json::Value;

    use super::super::operation::{Edit, Place};
    use super::*;

    /// Two nodes and an edge with every character that a format must escape, and a deleted node.
    fn graph() -> Graph {
        let operations = r#"[
            {"op":"add_node","id":"a\"b","type":"entity","content":"x < y & \"z\"\n\u0007\\","src":"q"},
            {"op":"add_node","id":"灯台","type":"stat","content":"9","src":""},
            {"op":"add_node","id":"gone","type":"claim","content":"wrong","src":""},
            {"op":"add_edge","source":"a\"b","target":"灯台","relation":"near <1>","src":""},
            {"op":"delete_node","id":"gone"}
        ]"#;
        let mut edits: Vec<Edit> = serde_json::from_str(operations).expect("these are operations");
        let span = Span { start_char: 3, end_char: 7, start_byte: 3, end_byte: 9 };
        edits[0].place = Some(Place { span, how: Match::Normalised });
        let mut graph = Graph::default();
        assert_eq!(graph.apply(DocId(1), PassageId(4), &edits), Vec::<String>::new());
        graph
    }

    fn exported(format: Format) -> String {
        export(&graph(), format, &BTreeMap::from([(DocId(1), "a & b.txt".to_owned())]))
    }

    #[test]
    fn json_has_everything() {
        let value: Value = serde_json::from_str(&exported(Format::Json)).expect("it is JSON");
        let found =
            json!([{ "document": 1, "path": "a & b.txt", "passage": 4, "match": "normalised", "start": 3, "end": 7 }]);
        assert_eq!(value["nodes"][0]["sources"], found);
        let lost = json!([{ "document": 1, "path": "a & b.txt", "passage": 4, "match": "unverified" }]);
        let node = json!({ "id": "灯台", "type": "stat", "content": "9", "degree": 1, "sources": lost });
        assert_eq!(value["nodes"][1], node);
        assert_eq!(value["edges"][0]["relation"], "near <1>");
        assert_eq!((&value["deleted"][0]["id"], &value["blocks"]), (&json!("gone"), &json!(1)));
        assert_eq!(value["digest"], graph().digest().to_string());
    }

    #[test]
    fn graphml_is_escaped() {
        let text = exported(Format::Graphml);
        let node = "<node id=\"a&quot;b\"><data key=\"type\">entity</data>\
                    <data key=\"content\">x &lt; y &amp; &quot;z&quot;&#10;\u{fffd}\\</data>\
                    <data key=\"path\">a &amp; b.txt</data><data key=\"start\">3</data><data key=\"end\">7</data></node>";
        assert!(text.contains(node), "{text}");
        let edge = "<edge source=\"a&quot;b\" target=\"灯台\"><data key=\"relation\">near &lt;1&gt;</data></edge>";
        assert!(text.contains(edge), "{text}");
        assert!(!text.contains("gone") && text.ends_with("</graphml>\n"));
    }

    #[test]
    fn dot_is_quoted() {
        let want = "digraph mindgraph {\n  \"a\\\"b\" [shape=box, tooltip=\"x < y & \\\"z\\\"\\n\u{7}\\\\\"];\n  \
                    \"灯台\" [shape=component, tooltip=\"9\"];\n  \"a\\\"b\" -> \"灯台\" [label=\"near <1>\"];\n}\n";
        assert_eq!(exported(Format::Dot), want);
    }
}
