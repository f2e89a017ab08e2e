//! The numbers of a comparison, for people and for programs.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use store::fuse::RRF_K;

use super::{Comparison, DEPTH, PUBLISHED, Published, Rankings, Tool};
use crate::data::files;
use crate::score::{Found, ndcg_at, recall_at};
use crate::{Dataset, Suite};

/// The depth at which nDCG is reported.
const NDCG_DEPTH: usize = 10;
/// The group of all queries.
const ALL: &str = "all";

/// How well each tool found what was wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub suite: Suite,
    /// The data files, without their folders.
    pub files: Vec<String>,
    pub passages: usize,
    pub queries: usize,
    pub bm25_k1: f32,
    pub bm25_b: f32,
    /// The embedder, if a tool needed one.
    pub embedder: Option<String>,
    /// Tokens of a text that the embedder reads, special tokens not counted.
    pub window_tokens: Option<usize>,
    /// See [`Rankings::cut_passages`].
    pub cut_passages: usize,
    /// See [`Rankings::cut_queries`].
    pub cut_queries: usize,
    pub rows: Vec<Row>,
    /// What others have published for the same queries and tools.
    pub published: Vec<Published>,
    /// See [`Dataset::notes`].
    pub notes: Vec<String>,
}

/// The numbers of one tool for one group of queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub group: String,
    pub queries: usize,
    pub tool: Tool,
    /// `ndcg@10`, `recall@5`, ...: means over the queries.
    #[serde(flatten)]
    pub scores: Map<String, Value>,
}

impl Summary {
    /// Scores the rankings of a suite's data.
    pub fn new(suite: Suite, data: &Dataset, comparison: &Comparison<'_>, rankings: &Rankings) -> Summary {
        let embedder = comparison.embedder.filter(|_| comparison.tools.iter().any(|tool| tool.embeds()));
        let name = embedder.map(|embedder| embedder.name().to_owned());
        let comparable = |number: &Published| {
            (number.suite, number.queries) == (suite, rankings.queries.len())
                && comparison.tools.contains(&number.tool)
                && number.embedder.is_none_or(|embedder| name.as_deref().is_some_and(|name| name.starts_with(embedder)))
        };
        Summary {
            suite,
            files: data.files.iter().map(|file| files::name(file)).collect(),
            passages: data.collections.iter().map(|collection| collection.passages.len()).sum(),
            queries: rankings.queries.len(),
            bm25_k1: comparison.bm25.k1,
            bm25_b: comparison.bm25.b,
            window_tokens: embedder.map(calls::Embedder::window_tokens),
            cut_passages: rankings.cut_passages,
            cut_queries: rankings.cut_queries,
            rows: rows(suite, rankings),
            published: PUBLISHED.into_iter().filter(comparable).collect(),
            notes: data.notes.clone(),
            embedder: name,
        }
    }

    /// A number, by tool and name, for a group of queries (`all` of them, or one of the data set's).
    pub fn score(&self, group: &str, tool: Tool, name: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.group == group && row.tool == tool)?;
        row.scores.get(name)?.as_f64()
    }
}

/// A row for each tool, first for all queries, then for each group.
fn rows(suite: Suite, rankings: &Rankings) -> Vec<Row> {
    let mut groups: Vec<&str> = rankings.queries.iter().flat_map(|query| &query.groups).map(String::as_str).collect();
    groups.sort_unstable();
    groups.dedup();
    groups.insert(0, ALL);
    let mut rows = Vec::new();
    for group in groups {
        let asked = rankings.queries.iter().filter(|query| group == ALL || query.groups.iter().any(|of| of == group));
        let asked: Vec<_> = asked.collect();
        for (number, tool) in rankings.tools.iter().enumerate() {
            let found: Vec<&[Found]> = asked.iter().map(|query| query.found[number].as_slice()).collect();
            rows.push(Row {
                group: group.to_owned(),
                queries: found.len(),
                tool: *tool,
                scores: scores(suite, &found),
            });
        }
    }
    rows
}

fn scores(suite: Suite, found: &[&[Found]]) -> Map<String, Value> {
    let mut scores = Map::new();
    scores.insert(format!("ndcg@{NDCG_DEPTH}"), mean(found, |found| ndcg_at(NDCG_DEPTH, found)).into());
    for depth in suite.recall_depths() {
        scores.insert(format!("recall@{depth}"), mean(found, |found| recall_at(*depth, found)).into());
    }
    scores
}

fn mean(found: &[&[Found]], score: impl Fn(&[Found]) -> f64) -> f64 {
    found.iter().map(|found| score(found)).sum::<f64>() / found.len() as f64
}

impl fmt::Display for Summary {
    /// Writes it as Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (suite, files) = (self.suite, self.files.join(", "));
        writeln!(f, "# Retrieval: {suite}\n\n{} passages, {} queries of {files}.", self.passages, self.queries)?;
        writeln!(f, "BM25 with k1 = {}, b = {}.", self.bm25_k1, self.bm25_b)?;
        if let (Some(embedder), Some(window)) = (&self.embedder, self.window_tokens) {
            let (passages, queries) = (self.cut_passages, self.cut_queries);
            writeln!(f, "Dense: {embedder}, which reads {window} tokens of a text besides the special ones.")?;
            writeln!(f, "{passages} passages and {queries} queries were longer and were cut to that.")?;
            writeln!(f, "Fused: the first {DEPTH} of both, k = {RRF_K}.")?;
        }
        self.write_rows(f)?;
        self.write_published(f)?;
        if !self.notes.is_empty() {
            writeln!(f, "\nNot taken as it stands in the files:\n")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "- {note}"))
    }
}

impl Summary {
    fn write_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.rows.first().into_iter().flat_map(|row| row.scores.keys()).collect();
        write!(f, "\n| group | queries | tool |")?;
        names.iter().try_for_each(|name| write!(f, " {name} |"))?;
        writeln!(f, "\n|---|---:|---|{}", "---:|".repeat(names.len()))?;
        for Row { group, queries, tool, scores } in &self.rows {
            write!(f, "| {group} | {queries} | {tool} |")?;
            scores.values().try_for_each(|score| write!(f, " {:.4} |", score.as_f64().unwrap_or(f64::NAN)))?;
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_published(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.published.is_empty() {
            writeln!(f, "\n| tool | number | here | published | by |\n|---|---|---:|---:|---|")?;
        }
        self.published.iter().try_for_each(|Published { tool, metric, value, source, .. }| {
            let here = self.score(ALL, *tool, metric).unwrap_or(f64::NAN);
            writeln!(f, "| {tool} | {metric} | {here:.4} | {value} | {source} |")
        })
    }
}
