//! The two tools of the answer stage (section 3.3 and appendix D.3): the passage around a node's quote, and the map of the
//! graph.

use std::collections::HashSet;
use std::ops::Range;

use calls::schema;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Corpus, DocId, Layer};

use super::community::{Community, communities};
use super::graph::{Graph, Node, Source};
use super::report::{Report, reports};
use crate::core::access::Access;
use crate::core::error::Result;
use crate::core::origin::{time_at, unstated};
use crate::core::session::Session;
use crate::core::trace::{Event, HitRecord};

/// Characters of a passage.
const PASSAGE_CHARS: usize = 1000;

/// Passages that one lookup shows.
const MAX_PASSAGES: usize = 4;

/// Named nodes per subgraph; all nodes without edges are one subgraph.
const MAX_LISTED: usize = 64;

/// A graph and its tools.
pub(super) struct Tools<'a> {
    pub graph: Graph,
    pub access: Access<'a>,
    communities: Vec<Community>,
    /// The ids of the nodes that the model has seen.
    pub shown: HashSet<String>,
    /// Written at the first call that needs them.
    reports: Option<Vec<Report>>,
    /// Calls whose results the model has received.
    given: HashSet<ToolCall>,
    /// Calls whose results have no room.
    left_out: HashSet<ToolCall>,
}

/// The result of a call, which the model has not received yet.
pub(super) struct ToolResult {
    pub text: String,
    /// The call; none if the text is an error.
    call: Option<ToolCall>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "tool", rename_all = "snake_case")]
enum ToolCall {
    LookupSource { node_id: String },
    SubgraphSummary(Summary),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
enum Summary {
    Index,
    Detail { subgraph_id: usize },
}

impl<'a> Tools<'a> {
    pub fn new(graph: Graph, access: Access<'a>) -> Tools<'a> {
        let (shown, given, left_out) = (HashSet::new(), HashSet::new(), HashSet::new());
        Tools { communities: communities(&graph), graph, access, shown, reports: None, given, left_out }
    }

    /// The nodes that the model has seen, in the graph's order.
    pub fn shown_ids(&self) -> impl Iterator<Item = &str> {
        self.graph.ids().filter(|id| self.shown.contains(*id))
    }

    /// The schema of one call: shown nodes and subgraphs that were not requested before; none if there are no more.
    pub fn form(&self) -> Option<Value> {
        let new = |call: &ToolCall| !self.given.contains(call) && !self.left_out.contains(call);
        let lookup = |id: &&str| new(&ToolCall::LookupSource { node_id: (*id).to_owned() });
        let nodes: Vec<&str> = self.shown_ids().filter(lookup).collect();
        let detail = |id: &usize| new(&ToolCall::SubgraphSummary(Summary::Detail { subgraph_id: *id }));
        let subgraphs: Vec<usize> = (0..self.communities.len()).filter(detail).collect();
        let summary = |mode| [("tool", schema::constant("subgraph_summary")), ("mode", schema::constant(mode))];
        let mut forms = Vec::new();
        if !nodes.is_empty() {
            forms.push(schema::object([
                ("tool", schema::constant("lookup_source")),
                ("node_id", schema::one_of(nodes)),
            ]));
        }
        if !self.communities.is_empty() && new(&ToolCall::SubgraphSummary(Summary::Index)) {
            forms.push(schema::object(summary("index")));
        }
        if !subgraphs.is_empty() {
            let [tool, mode] = summary("detail");
            forms.push(schema::object([tool, mode, ("subgraph_id", schema::one_of(subgraphs))]));
        }
        (!forms.is_empty()).then(|| schema::any_of(forms))
    }

    /// The result of a call; an invalid call results in an error text for the model.
    pub async fn call(&mut self, value: &Value, session: &Session<'_>) -> Result<ToolResult> {
        let told = |text: &str| Ok(ToolResult { text: format!("{value}: {text}"), call: None });
        let call: ToolCall = match serde_json::from_value(value.clone()) {
            Ok(call) => call,
            Err(error) => return told(&format!("error: this is no call of a tool ({error})")),
        };
        if self.given.contains(&call) {
            return told("you have this already, see above");
        }
        if self.left_out.contains(&call) {
            return told("error: there is no room for this");
        }
        let result = match &call {
            ToolCall::LookupSource { node_id } => self.lookup_source(node_id, session)?,
            ToolCall::SubgraphSummary(summary) => self.subgraph_summary(*summary, session).await?,
        };
        match result {
            Ok(result) => Ok(ToolResult { text: format!("{value}:\n{result}"), call: Some(call) }),
            Err(complaint) => told(&format!("error: {complaint}")),
        }
    }

    /// Records that the model receives a result, and the nodes that it names.
    pub fn give(&mut self, result: ToolResult) {
        let Some(call) = result.call else { return };
        if let ToolCall::SubgraphSummary(Summary::Detail { subgraph_id }) = &call {
            let nodes = self.communities[*subgraph_id].nodes(&self.graph).take(MAX_LISTED);
            self.shown.extend(nodes.map(|node| node.id.clone()));
        }
        self.given.insert(call);
    }

    /// Records that there is no room for a result.
    pub fn leave_out(&mut self, result: ToolResult) {
        self.left_out.extend(result.call);
    }

    /// The parts of documents that lookups have shown, in the order of the graph.
    pub fn passages(&self) -> Result<Vec<(DocId, Range<usize>)>> {
        let looked_up = |node: &&Node| self.given.contains(&ToolCall::LookupSource { node_id: node.id.clone() });
        let sources = self.graph.nodes.iter().filter(looked_up).flat_map(|node| some_of(&node.sources));
        let part = |source: &Source| {
            let text = self.access.document_text(source.document)?;
            Ok((source.document, around(source, &text, &self.access)?))
        };
        sources.map(part).collect()
    }

    /// The passages of a node, those with a quote that was found first.
    fn lookup_source(&self, id: &str, session: &Session<'_>) -> Result<std::result::Result<String, String>> {
        let Some(node) = self.graph.node(id) else { return Ok(Err(self.unknown(id))) };
        if node.sources.is_empty() {
            return Ok(Err(format!("{id} has no source")));
        }
        let more = node.sources.len().saturating_sub(MAX_PASSAGES);
        let sources = some_of(&node.sources);
        let hits = sources.iter().map(|source| HitRecord { page: source.block.0, score: 0.0 }).collect();
        session.trace.record(Event::Search { tool: "lookup_source".into(), queries: vec![id.to_owned()], hits })?;
        let mut passages: Vec<String> = Vec::new();
        for source in sources {
            let passage = passage(source, &self.access)?;
            // Quotes that are close together may have the same passage.
            if !passages.contains(&passage) {
                passages.push(passage);
            }
        }
        if more > 0 {
            passages.push(format!("{more} more sources of {id} are not shown"));
        }
        Ok(Ok(passages.join("\n\n")))
    }

    /// The error text for an unknown id.
    pub fn unknown(&self, id: &str) -> String {
        let nearest = self.graph.ids().max_by(|a, b| {
            let near = |known: &str| strsim::jaro_winkler(known, id);
            // The first of equals.
            near(a).total_cmp(&near(b)).then(std::cmp::Ordering::Greater)
        });
        match nearest {
            Some(nearest) => format!("there is no node `{id}`, did you mean `{nearest}`?"),
            None => format!("there is no node `{id}`"),
        }
    }

    async fn subgraph_summary(
        &mut self,
        summary: Summary,
        session: &Session<'_>,
    ) -> Result<std::result::Result<String, String>> {
        let queries = match summary {
            Summary::Index => vec!["index".to_owned()],
            Summary::Detail { subgraph_id } if subgraph_id < self.communities.len() => {
                vec!["detail".to_owned(), subgraph_id.to_string()]
            }
            Summary::Detail { .. } => {
                return Ok(Err(format!("subgraph_id must be a number below {}", self.communities.len())));
            }
        };
        session.trace.record(Event::Search { tool: "subgraph_summary".into(), queries, hits: Vec::new() })?;
        let reports = match self.reports.take() {
            Some(reports) => reports,
            None => reports(&self.graph, &self.communities, &mut self.access, session).await?,
        };
        let reports = self.reports.insert(reports);
        Ok(Ok(match summary {
            Summary::Index => index(reports, &self.communities),
            Summary::Detail { subgraph_id } => {
                let names = self.communities[subgraph_id].names(&self.graph, MAX_LISTED);
                format!("{}\nnodes: {names}", reports[subgraph_id].text())
            }
        }))
    }
}

/// The sources that a lookup shows: those with a quote that was found first, of too many the oldest and the newest, since
/// a description may come from either.
fn some_of(sources: &[Source]) -> Vec<&Source> {
    let (found, others): (Vec<&Source>, Vec<&Source>) = sources.iter().partition(|source| source.place.is_some());
    let mut shown = both_ends(found, MAX_PASSAGES);
    shown.extend(both_ends(others, MAX_PASSAGES - shown.len()));
    shown
}

/// At most `most` items, from the beginning and from the end.
fn both_ends<T>(mut items: Vec<T>, most: usize) -> Vec<T> {
    if items.len() > most {
        items.drain(most.div_ceil(2)..items.len() - most / 2);
    }
    items
}

/// A line for every subgraph.
fn index(reports: &[Report], communities: &[Community]) -> String {
    let line = |(id, (report, community)): (usize, (&Report, &Community))| {
        let n_nodes = community.nodes.len();
        json!({ "subgraph_id": id, "title": report.title, "impact_rating": report.rating, "n_nodes": n_nodes })
            .to_string()
    };
    reports.iter().zip(communities).enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// The bytes of a source's quote; where it was not found, the beginning of its block.
fn middle(source: &Source, corpus: &Corpus) -> Result<Range<usize>> {
    let block = corpus.passage(source.block)?.span.bytes();
    Ok(source.place.map_or(block.start..block.start, |place| place.span.bytes()))
}

/// The bytes of a document's text that a lookup shows: about 1,000 characters with the source's quote in their middle, or from the
/// beginning of its block if the quote was not found.
fn around(source: &Source, text: &str, corpus: &Corpus) -> Result<Range<usize>> {
    let middle = middle(source, corpus)?;
    let (before, rest) = (text.get(..middle.start).unwrap_or_default(), text.get(middle.clone()).unwrap_or_default());
    let after = text.get(middle.end..).unwrap_or_default();
    let spare_chars = PASSAGE_CHARS.saturating_sub(rest.chars().count());
    let ahead = if source.place.is_some() { spare_chars / 2 } else { 0 };
    let start = before.char_indices().rev().take(ahead).last().map_or(middle.start, |(at, _)| at);
    let end = middle.end + after.char_indices().nth(spare_chars - ahead).map_or(after.len(), |(at, _)| at);
    Ok(start..end)
}

/// What a lookup shows of a source. The time of its session or message is named unless the passage states it.
fn passage(source: &Source, corpus: &Corpus) -> Result<String> {
    let path = corpus.document(source.document)?.path;
    let text = corpus.document_text(source.document)?;
    let Range { start, end } = around(source, &text, corpus)?;
    let note = match source.place {
        Some(_) => "",
        None => ", the beginning of its block, as its quote was not found",
    };
    let start_char = text[..start].chars().count();
    let shown = &text[start..end];
    let end_char = start_char + shown.chars().count();
    let time = time_at(&corpus.passages_of(source.document, Layer::Page)?, middle(source, corpus)?.start);
    let time = unstated(time.as_deref(), shown).map_or_else(String::new, |time| format!(", {time}"));
    Ok(format!("{path}{time}, characters {start_char} to {end_char}{note}\n\"\"\"\n{shown}\n\"\"\""))
}
