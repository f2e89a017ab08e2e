//! A graph for other programs: JSON with everything, GraphML and DOT for drawing.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde_json::{Value, json};
use store::DocId;

use super::graph::{Graph, Source};

/// A form in which a graph can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Nodes, edges, the places of all their quotes, and what was deleted.
    #[default]
    Json,
    /// GraphML 1.0, with the first place of each quote.
    Graphml,
    /// Graphviz.
    Dot,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Json => "json",
            Form::Graphml => "graphml",
            Form::Dot => "dot",
        })
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = [Form::Json, Form::Graphml, Form::Dot].into_iter().find(|form| form.to_string() == name);
        known.ok_or_else(|| format!("`{name}` is not one of json, graphml, dot"))
    }
}

/// The graph in a form; `paths` names its documents.
pub fn export(graph: &Graph, form: Form, paths: &BTreeMap<DocId, String>) -> String {
    match form {
        Form::Json => as_json(graph, paths),
        Form::Graphml => as_graphml(graph, paths),
        Form::Dot => as_dot(graph),
    }
}

fn as_json(graph: &Graph, paths: &BTreeMap<DocId, String>) -> String {
    let sources = |sources: &[Source]| sources.iter().map(|source| place(source, paths)).collect::<Vec<Value>>();
    let node = |node: &super::graph::Node| {
        let sources = sources(&node.sources);
        json!({ "id": node.id, "type": node.kind, "content": node.content, "sources": sources })
    };
    let edge = |edge: &super::graph::Edge| {
        let (from, to, sources) = (&edge.source, &edge.target, sources(&edge.sources));
        json!({ "source": from, "target": to, "relation": edge.relation, "sources": sources })
    };
    let whole = json!({
        "nodes": graph.nodes.iter().map(node).collect::<Vec<_>>(),
        "edges": graph.edges.iter().map(edge).collect::<Vec<_>>(),
        "deleted": graph.deleted.iter().map(node).collect::<Vec<_>>(),
        "blocks": graph.blocks,
        "skipped_blocks": graph.skipped,
        "digest": graph.digest().to_string(),
    });
    format!("{whole:#}\n")
}

fn place(source: &Source, paths: &BTreeMap<DocId, String>) -> Value {
    let (path, block) = (paths.get(&source.document), source.block.0);
    match source.place {
        Some(place) => {
            let (start, end) = (place.span.start_char, place.span.end_char);
            json!({ "path": path, "block": block, "start": start, "end": end, "match": place.how })
        }
        None => json!({ "path": path, "block": block, "match": "unverified" }),
    }
}

fn as_graphml(graph: &Graph, paths: &BTreeMap<DocId, String>) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    for (of, name, kind) in [
        ("node", "type", "string"),
        ("node", "content", "string"),
        ("edge", "relation", "string"),
        ("all", "path", "string"),
        ("all", "start", "int"),
        ("all", "end", "int"),
    ] {
        let _ = writeln!(text, "  <key id=\"{name}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>");
    }
    text.push_str("  <graph edgedefault=\"directed\">\n");
    let data = |name: &str, value: &str| format!("<data key=\"{name}\">{}</data>", escaped_xml(value));
    let located = |sources: &[Source]| {
        let source = sources.iter().find(|source| source.place.is_some());
        source.and_then(|source| Some((source, source.place?))).map_or_else(String::new, |(source, place)| {
            let path = paths.get(&source.document).map_or_else(String::new, |path| data("path", path));
            let (start, end) = (place.span.start_char.to_string(), place.span.end_char.to_string());
            format!("{path}{}{}", data("start", &start), data("end", &end))
        })
    };
    for node in &graph.nodes {
        let inside =
            [data("type", node.kind.as_str()), data("content", &node.content), located(&node.sources)].concat();
        let _ = writeln!(text, "    <node id=\"{}\">{inside}</node>", escaped_xml(&node.id));
    }
    for edge in &graph.edges {
        let inside = [data("relation", &edge.relation), located(&edge.sources)].concat();
        let (from, to) = (escaped_xml(&edge.source), escaped_xml(&edge.target));
        let _ = writeln!(text, "    <edge source=\"{from}\" target=\"{to}\">{inside}</edge>");
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

/// A text within XML 1.0; characters that XML cannot hold become the replacement character.
fn escaped_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => _ = write!(escaped, "&#{};", c as u32),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

fn as_dot(graph: &Graph) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
    let mut text = String::from("digraph mindgraph {\n");
    for node in &graph.nodes {
        let (id, tooltip) = (quoted(&node.id), quoted(&node.content));
        let _ = writeln!(text, "  {id} [shape={}, tooltip={tooltip}];", shape(node.kind));
    }
    for edge in &graph.edges {
        let (from, to, label) = (quoted(&edge.source), quoted(&edge.target), quoted(&edge.relation));
        let _ = writeln!(text, "  {from} -> {to} [label={label}];");
    }
    text.push_str("}\n");
    text
}

/// A shape for each type of node.
fn shape(kind: super::operation::Kind) -> &'static str {
    use super::operation::Kind;
    match kind {
        Kind::Entity => "box",
        Kind::Event => "ellipse",
        Kind::Claim => "note",
        Kind::Concept => "hexagon",
        Kind::Stat => "component",
    }
}

#[cfg(test)]
mod tests {
    use store::{PassageId, Span};

    use super::super::operation::{Edit, Place};
    use super::super::quote::Match;
    use super::*;

    /// Two nodes and an edge with every sign that a form could stumble over, and one node that was deleted.
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

    fn exported(form: Form) -> String {
        export(&graph(), form, &BTreeMap::from([(DocId(1), "a & b.txt".to_owned())]))
    }

    #[test]
    fn json_has_everything() {
        let value: Value = serde_json::from_str(&exported(Form::Json)).expect("it is JSON");
        let found = json!([{ "path": "a & b.txt", "block": 4, "start": 3, "end": 7, "match": "normalised" }]);
        assert_eq!(value["nodes"][0]["sources"], found);
        let lost = json!([{ "path": "a & b.txt", "block": 4, "match": "unverified" }]);
        assert_eq!(value["nodes"][1], json!({ "id": "灯台", "type": "stat", "content": "9", "sources": lost }));
        assert_eq!(value["edges"][0]["relation"], "near <1>");
        assert_eq!((&value["deleted"][0]["id"], &value["blocks"]), (&json!("gone"), &json!(1)));
        assert_eq!(value["digest"], graph().digest().to_string());
    }

    #[test]
    fn graphml_is_escaped() {
        let text = exported(Form::Graphml);
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
        assert_eq!(exported(Form::Dot), want);
    }

    #[test]
    fn forms_have_names() {
        for form in [Form::Json, Form::Graphml, Form::Dot] {
            assert_eq!(form.to_string().parse(), Ok(form));
        }
        assert!("png".parse::<Form>().is_err());
    }
}
