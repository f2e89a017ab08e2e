//! Reports about communities, as in GraphRAG: written when the first is needed, in one batch, and stored (section 3.3).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use calls::{Agent, Stability, schema};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Author, Bond, Digest, NewDerived, PassageId};

use super::builder::steady;
use super::community::Community;
use super::graph::Graph;
use super::prompts::REPORT;
use super::view::view;
use crate::core::access::Access;
use crate::core::error::Result;
use crate::core::prompt::{Input, build, phrase_of, string_of};
use crate::core::session::{Ask, Session};

const STEP: &str = "mindgraph.report";

/// The key of stored reports.
const KIND: &str = "mindgraph.report/1";

/// Tokens of a report and of its input (GraphRAG).
const MAX_OUTPUT_TOKENS: usize = 2000;
const MAX_INPUT_TOKENS: usize = 8000;

/// Findings of a report (GraphRAG: 5 to 10; a community of two nodes has fewer).
const MAX_FINDINGS: usize = 10;

/// Words of a report's parts; a sentence is what explains the rating or sums up a finding.
const TITLE_WORDS: usize = 15;
const SUMMARY_WORDS: usize = 150;
const SENTENCE_WORDS: usize = 35;
const EXPLANATION_WORDS: usize = 75;

/// Nodes that name a community without a report: the most that a community has after splitting.
const MAX_NAMES: usize = 10;

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub title: String,
    summary: String,
    /// From 0 to 10.
    pub rating: u8,
    rating_explanation: String,
    findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Finding {
    summary: String,
    explanation: String,
}

impl Report {
    /// The replacement for a report without a valid reply: the names of the first nodes.
    fn stand_in(community: &Community, graph: &Graph) -> Report {
        let title = community.names(graph, MAX_NAMES);
        let (summary, rating_explanation) = (String::new(), String::new());
        Report { title, summary, rating: 0, rating_explanation, findings: Vec::new() }
    }

    /// The whole report as a text.
    pub fn text(&self) -> String {
        let mut text = format!("{} (rating {})\n{}", self.title, self.rating, self.summary);
        for finding in &self.findings {
            let _ = write!(text, "\n- {} {}", finding.summary, finding.explanation);
        }
        text.trim_end().to_owned()
    }
}

/// The reports about all communities, in their order. Missing ones are written concurrently.
pub(super) async fn reports(
    graph: &Graph,
    communities: &[Community],
    access: &mut Access<'_>,
    session: &Session<'_>,
) -> Result<Vec<Report>> {
    let session = &steady(session);
    let author = author(session);
    let asks = communities.iter().map(|community| question(community, graph, session));
    let asks = asks.collect::<Result<Vec<_>>>()?;
    let keys: Vec<Digest> = asks.iter().map(|(_, shown)| Digest::of(&[shown, &author.model, &author.prompt])).collect();
    let kept = keys.iter().map(|key| Ok(access.derived_at(KIND, key)?.and_then(|kept| read(&kept.text))));
    let mut reports: Vec<Option<Report>> = kept.collect::<Result<_>>()?;
    let open: Vec<usize> = (0..reports.len()).filter(|at| reports[*at].is_none()).collect();
    let made = join_all(open.iter().map(|at| session.json_if_it_fits(asks[*at].0.clone(), form(), check))).await;
    let mut first_failure = Ok(());
    for (at, made) in open.into_iter().zip(made) {
        match made {
            Ok(Some(report)) => {
                keep(&report, keys[at], &communities[at], graph, &author, access)?;
                reports[at] = Some(report);
            }
            Ok(None) => {}
            Err(failure) => first_failure = first_failure.and(Err(failure)),
        }
    }
    first_failure?;
    let whole = |(report, community): (Option<Report>, &Community)| {
        report.unwrap_or_else(|| Report::stand_in(community, graph))
    };
    Ok(reports.into_iter().zip(communities).map(whole).collect())
}

/// The call for a report, and the part of the graph in its prompt.
fn question(community: &Community, graph: &Graph, session: &Session<'_>) -> Result<(Ask, String)> {
    let part = Graph {
        nodes: community.nodes(graph).cloned().collect(),
        edges: community.edges(graph).cloned().collect(),
        ..Graph::default()
    };
    let max_output_tokens = session.long_output_tokens(Agent::Memorizer, MAX_OUTPUT_TOKENS);
    let ask = |shown: &str| {
        let inputs = vec![Input::new("COMMUNITY", Stability::Volatile, shown)];
        let prompt = build(session.settings.layout, REPORT, inputs);
        Ask { agent: Agent::Memorizer, step: STEP, prompt, thinking_tokens: 0, max_output_tokens, draw: 0 }
    };
    let room = session.context(Agent::Memorizer).saturating_sub(max_output_tokens);
    let most_tokens = room.min(session.prompt_tokens(&ask("")) + MAX_INPUT_TOKENS);
    let shown = view(&part, most_tokens, ask, session)?.text;
    Ok((ask(&shown), shown))
}

fn form() -> Value {
    let finding =
        schema::object([("summary", phrase_of(SENTENCE_WORDS)), ("explanation", string_of(EXPLANATION_WORDS))]);
    schema::object([
        ("title", phrase_of(TITLE_WORDS)),
        ("summary", phrase_of(SUMMARY_WORDS)),
        ("rating", schema::integer(0, 10)),
        ("rating_explanation", phrase_of(SENTENCE_WORDS)),
        ("findings", schema::at_least_one(schema::array(finding, MAX_FINDINGS))),
    ])
}

fn check(report: &Report) -> std::result::Result<(), String> {
    match report {
        Report { rating, .. } if *rating > 10 => Err(format!("{rating} is no rating from 0 to 10")),
        Report { title, .. } if title.trim().is_empty() => Err("it has no title".into()),
        _ => Ok(()),
    }
}

fn read(text: &str) -> Option<Report> {
    serde_json::from_str(text).ok()
}

/// Stores a report if access permits. It depends on every block of its nodes and edges, and is removed with any one.
fn keep(
    report: &Report,
    key: Digest,
    community: &Community,
    graph: &Graph,
    author: &Author,
    access: &mut Access<'_>,
) -> Result<()> {
    let Access::Write(writer) = access else { return Ok(()) };
    let of_nodes = community.nodes(graph).flat_map(|node| &node.sources);
    let of_edges = community.edges(graph).flat_map(|edge| &edge.sources);
    let sources: BTreeSet<PassageId> = of_nodes.chain(of_edges).map(|source| source.block).collect();
    let sources: Vec<PassageId> = sources.into_iter().collect();
    let text = serde_json::to_string(report).unwrap_or_default();
    writer.put_derived(&[NewDerived { kind: KIND, key, text: &text, sources: &sources, bond: Bond::All, author }])?;
    Ok(())
}

/// The author of reports: the model, and its instructions.
fn author(session: &Session<'_>) -> Author {
    let prompt = format!("{STEP} {}", Digest::of(&[REPORT.task, REPORT.rules, REPORT.cue]));
    Author { model: session.caller.models().model(Agent::Memorizer).to_owned(), prompt }
}
