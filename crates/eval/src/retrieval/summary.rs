//! The results of a comparison, as Markdown and JSON.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};
use store::fuse::RRF_K;

use super::{Column, Comparison, FUSED_DEPTH, NDCG_DEPTH, PUBLISHED, Published, Ranked, Rankings, Tool};
use crate::chart::{Axis, Chart, Kind, Series};
use crate::data::files;
use crate::score::{Found, ndcg_at, recall_at};
use crate::{Dataset, Result, Suite};

/// The group of all queries.
const ALL: &str = "all";
/// K and W of the plots (MemCoT, figure 4).
const FIGURE_K: usize = 10;
const FIGURE_WINDOW: usize = 4;

/// The scores of each tool.
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
    /// Published numbers for the same queries and tools.
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
    /// Passages on either side of a hit that count as found too.
    #[serde(skip_serializing_if = "is_zero")]
    pub window: usize,
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
            rows: rows(comparison, rankings),
            published: PUBLISHED.into_iter().filter(comparable).collect(),
            notes: data.notes.clone(),
            embedder: name,
        }
    }

    /// A number, by tool, window and name, for a group of queries (`all` of them, or one of the data set's).
    pub fn score(&self, group: &str, tool: Tool, window: usize, name: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.group == group && (row.tool, row.window) == (tool, window))?;
        row.scores.get(name)?.as_f64()
    }

    /// Draws nDCG by tool beside published numbers, recall against k, and recall against the window where passages have
    /// windows (the latter two are MemCoT's figure 4), as SVG and PNG.
    ///
    /// # Errors
    /// [`crate::Error::Write`], [`crate::Error::Draw`].
    pub fn draw(&self, folder: &Path) -> Result<()> {
        let mut tools: Vec<Tool> = Vec::new();
        self.rows.iter().for_each(|row| {
            if !tools.contains(&row.tool) {
                tools.push(row.tool);
            }
        });
        let windows = numbers(self.rows.iter().map(|row| row.window));
        let names = self.rows.iter().flat_map(|row| row.scores.keys());
        let depths = numbers(names.filter_map(|name| name.strip_prefix("recall@")?.parse().ok()));
        self.ndcg(&tools).draw(folder, "ndcg")?;
        let recall = |tool, window, k: usize| Some(self.score(ALL, tool, window, &format!("recall@{k}"))? * 100.0);
        let chart = |title: String, axis: &str, places: &[usize], series| Chart {
            title: format!("{}: {title}", self.suite),
            kind: Kind::Lines,
            axis: Axis::Names(axis.into(), places.iter().map(usize::to_string).collect()),
            values: "evidence recall, %".into(),
            series,
        };
        let around = if windows.contains(&FIGURE_WINDOW) { FIGURE_WINDOW } else { 0 };
        let by_k = |tool: &Tool| Series::named(tool.to_string(), depths.iter().map(|k| recall(*tool, around, *k)));
        let title = match around {
            0 => "recall against K".to_owned(),
            _ => format!("recall with W = {around} turns on either side, against K"),
        };
        let lines = tools.iter().map(by_k).collect();
        chart(title, "passages that a search brings, K", &depths, lines).draw(folder, "recall-by-k")?;
        if windows.len() < 2 {
            return Ok(());
        }
        let by_window =
            |tool: &Tool| Series::named(tool.to_string(), windows.iter().map(|w| recall(*tool, *w, FIGURE_K)));
        let title = format!("recall at K = {FIGURE_K}, against W");
        let lines = tools.iter().map(by_window).collect();
        chart(title, "turns on either side that count as found, W", &windows, lines).draw(folder, "recall-by-window")
    }

    fn ndcg(&self, tools: &[Tool]) -> Chart {
        let metric = format!("ndcg@{NDCG_DEPTH}");
        let mut series = vec![Series::named("here", tools.iter().map(|tool| self.score(ALL, *tool, 0, &metric)))];
        for published in self.published.iter().filter(|published| published.metric == metric) {
            let source = published.source.split(':').next().unwrap_or_default();
            let values = tools.iter().map(|tool| (*tool == published.tool).then_some(published.value));
            series.push(Series::named(source, values).published());
        }
        Chart {
            title: format!("{}: {metric} by tool, {} queries", self.suite, self.queries),
            kind: Kind::Bars,
            axis: Axis::Names("tool".into(), tools.iter().map(ToString::to_string).collect()),
            values: format!("{metric}, 0 to 1"),
            series,
        }
    }
}

/// Each number once, in order.
fn numbers(all: impl Iterator<Item = usize>) -> Vec<usize> {
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A row for each tool and window, first for all queries, then for each group.
fn rows(comparison: &Comparison<'_>, rankings: &Rankings) -> Vec<Row> {
    let mut groups: Vec<&str> = rankings.queries.iter().flat_map(|query| &query.groups).map(String::as_str).collect();
    groups.sort_unstable();
    groups.dedup();
    groups.insert(0, ALL);
    let mut rows = Vec::new();
    for group in groups {
        let asked = rankings.queries.iter().filter(|query| group == ALL || query.groups.iter().any(|of| of == group));
        let asked: Vec<&Ranked> = asked.collect();
        for window in [0].into_iter().chain(comparison.windows.iter().copied()) {
            rows.extend(comparison.tools.iter().map(|tool| Row {
                group: group.to_owned(),
                queries: asked.len(),
                tool: *tool,
                window,
                scores: scores(comparison.depths, *tool, window, &asked, &rankings.columns),
            }));
        }
    }
    rows
}

fn scores(depths: &[usize], tool: Tool, window: usize, asked: &[&Ranked], columns: &[Column]) -> Map<String, Value> {
    let found = |k: usize| {
        let is = |column: &Column| {
            (column.tool, column.window) == (tool, window) && column.k.is_none_or(|column| column == k)
        };
        let place = columns.iter().position(is);
        asked.iter().filter_map(move |query| query.found.get(place?))
    };
    let mean = |k: usize, score: fn(usize, &[Found]) -> f64| {
        Value::from(found(k).map(|found| score(k, found)).sum::<f64>() / asked.len() as f64)
    };
    let mut scores = Map::new();
    // Passages beside a hit have no rank of their own.
    if window == 0 {
        scores.insert(format!("ndcg@{NDCG_DEPTH}"), mean(NDCG_DEPTH, ndcg_at));
    }
    for depth in depths {
        scores.insert(format!("recall@{depth}"), mean(*depth, recall_at));
    }
    scores
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
            let fuses = |tool: &&Tool| !tool.parts().is_empty() && self.rows.iter().any(|row| row.tool == **tool);
            for tool in Tool::ALL.iter().filter(fuses) {
                let parts = tool.parts().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                match tool {
                    Tool::Fused => writeln!(f, "{tool}: the scores of {parts}, combined as the methods do.")?,
                    _ => writeln!(
                        f,
                        "{tool}: for a number at k the first {FUSED_DEPTH} k of {parts}, by reciprocal rank with {RRF_K}."
                    )?,
                }
            }
        }
        self.write_rows(f)?;
        self.write_windows(f)?;
        self.write_published(f)?;
        if !self.notes.is_empty() {
            writeln!(f, "\nChanged or left out of the data:\n")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "- {note}"))
    }
}

impl Summary {
    fn write_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.window == 0).collect();
        let names: Vec<&String> = rows.first().into_iter().flat_map(|row| row.scores.keys()).collect();
        write!(f, "\n| group | queries | tool |")?;
        names.iter().try_for_each(|name| write!(f, " {name} |"))?;
        writeln!(f, "\n|---|---:|---|{}", "---:|".repeat(names.len()))?;
        for Row { group, queries, tool, scores, .. } in rows {
            write!(f, "| {group} | {queries} | {tool} |")?;
            scores.values().try_for_each(|score| write!(f, " {:.4} |", score.as_f64().unwrap_or(f64::NAN)))?;
            writeln!(f)?;
        }
        Ok(())
    }

    /// The effect of zoom-out: the same numbers with passages around each hit (MemCoT, figure 4).
    fn write_windows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.window > 0).collect();
        let names: Vec<&String> = rows.first().into_iter().flat_map(|row| row.scores.keys()).collect();
        if names.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n## With W passages on either side of what was found\n")?;
        write!(f, "| group | tool | W |")?;
        names.iter().try_for_each(|name| write!(f, " {name} |"))?;
        writeln!(f, "\n|---|---|---:|{}", "---:|".repeat(names.len()))?;
        for Row { group, tool, window, scores, .. } in rows {
            write!(f, "| {group} | {tool} | {window} |")?;
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
            let here = self.score(ALL, *tool, 0, metric).unwrap_or(f64::NAN);
            writeln!(f, "| {tool} | {metric} | {here:.4} | {value} | {source} |")
        })
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // required by serde
fn is_zero(number: &usize) -> bool {
    *number == 0
}
