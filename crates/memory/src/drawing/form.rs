//! A graph for other programs: JSON with everything, GraphML and DOT for drawing.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde_json::{Value, json};
use store::DocId;

use super::{Drawing, Edge, Node, Source};

/// A form in which a graph can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Nodes, edges and the places of all their sources.
    #[default]
    Json,
    /// GraphML 1.0, with the first place of each.
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

impl Drawing {
    /// Nodes and edges with the places of their sources; `paths` names the documents.
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

    /// GraphML 1.0, with the first place of each node and edge.
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

    /// Graphviz, under a name.
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
    /// A node with the places of its sources.
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

/// A shape for each type of node.
fn shape(kind: &str) -> &'static str {
    match kind {
        "event" => "ellipse",
        "claim" => "note",
        "concept" => "hexagon",
        "stat" => "component",
        _ => "box",
    }
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn forms_have_names() {
        for form in [Form::Json, Form::Graphml, Form::Dot] {
            assert_eq!(form.to_string().parse(), Ok(form));
        }
        assert!("png".parse::<Form>().is_err());
    }
}
