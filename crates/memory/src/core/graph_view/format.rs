//! File formats of graphs: JSON with everything, GraphML and DOT for drawing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use store::{Corpus, DocId};

use super::{Edge, GraphView, Node, Source};
use crate::core::error::Result;
use crate::core::named::named;

/// A file format for graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Nodes, edges and the spans of all their sources.
    #[default]
    Json,
    /// GraphML 1.0, with the first span of each node and edge.
    Graphml,
    /// Graphviz.
    Dot,
}

named!(Format: Json = "json", Graphml = "graphml", Dot = "dot");

/// The paths of a corpus' documents.
pub(crate) fn paths(corpus: &Corpus) -> Result<BTreeMap<DocId, String>> {
    Ok(corpus.documents()?.into_iter().map(|document| (document.id, document.path)).collect())
}

impl GraphView {
    /// The graph as a file.
    pub(crate) fn export(&self, format: Format, name: &str, corpus: &Corpus) -> Result<String> {
        let paths = paths(corpus)?;
        Ok(match format {
            Format::Json => format!("{:#}\n", self.json(&paths)),
            Format::Graphml => self.graphml(&paths),
            Format::Dot => self.dot(name),
        })
    }

    /// Nodes and edges with the spans of their sources; `paths` names the documents.
    pub fn json(&self, paths: &BTreeMap<DocId, String>) -> Value {
        let edge = |edge: &Edge| {
            let (from, to, sources) = (&edge.source, &edge.target, places(&edge.sources, paths));
            json!({ "source": from, "target": to, "relation": edge.relation, "sources": sources })
        };
        json!({
            "nodes": self.nodes.iter().map(|node| node.json(paths)).collect::<Vec<_>>(),
            "edges": self.edges.iter().map(edge).collect::<Vec<_>>(),
        })
    }

    /// GraphML 1.0, with the first span of each node and edge.
    pub fn graphml(&self, paths: &BTreeMap<DocId, String>) -> String {
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
            let place = sources.iter().find_map(|source| Some((source, source.span?)));
            place.map_or_else(String::new, |(source, span)| {
                let path = paths.get(&source.document).map_or_else(String::new, |path| data("path", path));
                let (start, end) = (span.start_char.to_string(), span.end_char.to_string());
                format!("{path}{}{}", data("start", &start), data("end", &end))
            })
        };
        for node in &self.nodes {
            let inside = [data("type", &node.kind), data("content", &node.content), located(&node.sources)].concat();
            let _ = writeln!(text, "    <node id=\"{}\">{inside}</node>", escaped_xml(&node.id));
        }
        for edge in &self.edges {
            let inside = [data("relation", &edge.relation), located(&edge.sources)].concat();
            let (from, to) = (escaped_xml(&edge.source), escaped_xml(&edge.target));
            let _ = writeln!(text, "    <edge source=\"{from}\" target=\"{to}\">{inside}</edge>");
        }
        text.push_str("  </graph>\n</graphml>\n");
        text
    }

    /// Graphviz, as a graph of this name.
    pub fn dot(&self, name: &str) -> String {
        let quoted =
            |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
        let mut text = format!("digraph {name} {{\n");
        for node in &self.nodes {
            let (id, tooltip) = (quoted(&node.id), quoted(&node.content));
            let _ = writeln!(text, "  {id} [shape={}, tooltip={tooltip}];", shape(&node.kind));
        }
        for edge in &self.edges {
            let (from, to, label) = (quoted(&edge.source), quoted(&edge.target), quoted(&edge.relation));
            let _ = writeln!(text, "  {from} -> {to} [label={label}];");
        }
        text.push_str("}\n");
        text
    }
}

impl Node {
    /// A node with the spans of its sources.
    pub(crate) fn json(&self, paths: &BTreeMap<DocId, String>) -> Value {
        let (kind, sources) = (&self.kind, places(&self.sources, paths));
        json!({ "id": self.id, "type": kind, "content": self.content, "degree": self.degree, "sources": sources })
    }
}

fn places(sources: &[Source], paths: &BTreeMap<DocId, String>) -> Vec<Value> {
    let place = |source: &Source| {
        let Source { document, passage, span, how } = source;
        let mut place = json!({ "document": document, "path": paths.get(document), "passage": passage, "match": how });
        if let Some(span) = span {
            place["start"] = span.start_char.into();
            place["end"] = span.end_char.into();
        }
        place
    };
    sources.iter().map(place).collect()
}

/// Escapes text for XML 1.0; characters that XML does not allow become U+FFFD.
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

/// The Graphviz shape of a type of node.
fn shape(kind: &str) -> &'static str {
    match kind {
        "event" => "ellipse",
        "claim" => "note",
        "concept" => "hexagon",
        "stat" => "component",
        _ => "box",
    }
}
