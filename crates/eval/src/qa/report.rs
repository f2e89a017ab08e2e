//! The numbers of a run, for people and for programs. They follow from manifest and results alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use calls::Usage;
use serde::Serialize;

use super::folder::{QaManifest, ScorerDigest, items, manifest, write_json};
use super::item::{Column, Item, Prepared};
use super::papers::Table;
use crate::score::{Scorer, ndcg_at, recall_at};
use crate::{Error, Result};

/// The group of all questions.
pub(super) const ALL: &str = "all";
/// The depths at which evidence recall is reported.
pub(super) const DEPTHS: [usize; 6] = [1, 3, 5, 10, 20, 50];
/// The depth at which nDCG of evidence is reported.
const NDCG_DEPTH: usize = 10;

/// What a run has shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub suite: String,
    /// Questions that every model and method was asked.
    pub questions: usize,
    pub embedder: String,
    pub scorers: Vec<ScorerDigest>,
    pub rows: Vec<Row>,
    pub costs: Vec<Cost>,
    /// What papers have published about the suite.
    pub published: Vec<Table>,
    pub notes: Vec<String>,
    pub prompts_sha256: String,
    pub peak_memory_bytes: Option<u64>,
}

/// The numbers of one model and method for one group of questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub model: String,
    pub method: String,
    pub group: String,
    pub questions: usize,
    /// Questions to which the method had no answer; they score 0.
    pub failed: usize,
    /// Means by scorer, of the questions to which it applies, from 0 to 1.
    pub scores: BTreeMap<String, f64>,
    /// `recall@5`, `ndcg@10`, ...: means over the questions with evidence.
    pub evidence: BTreeMap<String, f64>,
}

/// What one model and method took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    pub model: String,
    pub method: String,
    pub questions: usize,
    /// All preparation together.
    pub prepare: Usage,
    /// All questions together; seconds are those of calls, which run side by side.
    pub answer: Usage,
    /// The mean of the questions.
    pub compaction: Option<f64>,
}

/// Scores a run again, and writes its report and pictures.
///
/// # Errors
/// Those of its files.
pub fn write_report(run: &Path) -> Result<Report> {
    let manifest = manifest(run)?;
    let (prepared, mut items) = items(run)?;
    let scorers = manifest.plan.scorers()?;
    items.iter_mut().for_each(|item| item.score(&scorers));
    let report = Report::new(&manifest, &prepared, &items)?;
    write_json(&run.join("report.json"), &report)?;
    let path = run.join("report.md");
    std::fs::write(&path, report.to_string()).map_err(Error::writing(&path))?;
    super::plot::draw(&report, &run.join("plots"))?;
    Ok(report)
}

impl Report {
    /// Turns results into numbers.
    ///
    /// # Errors
    /// [`Error::Plan`] for a manifest with names that are none.
    pub fn new(manifest: &QaManifest, prepared: &[Prepared], items: &[Item]) -> Result<Report> {
        let columns: BTreeSet<Column> = items.iter().map(Item::column).collect();
        let of = |column: &Column| items.iter().filter(|item| item.column() == *column).collect::<Vec<_>>();
        let questions: BTreeSet<_> = items.iter().map(|item| (&item.case, &item.question.id)).collect();
        let scorers = manifest.plan.scorers()?;
        let rows = columns.iter().flat_map(|column| rows(column, &of(column), &scorers)).collect();
        let costs = columns.iter().map(|column| cost(column, &of(column), prepared)).collect();
        Ok(Report {
            suite: manifest.plan.suite.clone(),
            questions: questions.len(),
            embedder: manifest.plan.embedder.clone(),
            scorers: scorers.into_iter().map(ScorerDigest::of).collect(),
            rows,
            costs,
            published: Table::about(&manifest.plan.suite)?,
            notes: manifest.notes.clone(),
            prompts_sha256: manifest.prompts_sha256.clone(),
            peak_memory_bytes: manifest.peak_memory_bytes,
        })
    }

    /// A mean, from 0 to 1: of a scorer, of `recall@k` and the like, or `compaction`.
    pub fn number(&self, column: &Column, group: &str, name: &str) -> Option<f64> {
        let is = |model: &str, method: &str| (model, method) == (&column.0, &column.1);
        if name == "compaction" {
            return self.costs.iter().find(|cost| is(&cost.model, &cost.method))?.compaction;
        }
        let row = self.rows.iter().find(|row| is(&row.model, &row.method) && row.group == group)?;
        row.scores.get(name).or_else(|| row.evidence.get(name)).copied()
    }

    /// The models and methods of the run.
    pub fn columns(&self) -> Vec<Column> {
        self.costs.iter().map(|cost| (cost.model.clone(), cost.method.clone())).collect()
    }
}

/// A row for all questions and one for each group.
fn rows(column: &Column, items: &[&Item], scorers: &[Scorer]) -> Vec<Row> {
    let groups: BTreeSet<&str> = items.iter().flat_map(|item| &item.question.groups).map(String::as_str).collect();
    let mut rows = Vec::new();
    for group in [ALL].into_iter().chain(groups) {
        let in_group = |item: &&&Item| group == ALL || item.question.groups.iter().any(|of| of == group);
        let items: Vec<&Item> = items.iter().filter(in_group).copied().collect();
        let score = |scorer: &Scorer| {
            let name = scorer.to_string();
            let values = items.iter().filter_map(|item| item.scores.get(&name)).map(|mark| mark.value);
            Some((name.clone(), mean(values)?))
        };
        rows.push(Row {
            model: column.0.clone(),
            method: column.1.clone(),
            group: group.to_owned(),
            questions: items.len(),
            failed: items.iter().filter(|item| item.failed.is_some()).count(),
            scores: scorers.iter().filter_map(score).collect(),
            evidence: evidence(&items),
        });
    }
    rows
}

fn evidence(items: &[&Item]) -> BTreeMap<String, f64> {
    let found: Vec<_> = items.iter().filter_map(|item| item.evidence()).collect();
    let recall = |k: &usize| Some((format!("recall@{k}"), mean(found.iter().map(|found| recall_at(*k, found)))?));
    let ndcg = mean(found.iter().map(|found| ndcg_at(NDCG_DEPTH, found)));
    DEPTHS.iter().filter_map(recall).chain(ndcg.map(|value| (format!("ndcg@{NDCG_DEPTH}"), value))).collect()
}

fn cost(column: &Column, items: &[&Item], prepared: &[Prepared]) -> Cost {
    let mut cost = Cost {
        model: column.0.clone(),
        method: column.1.clone(),
        questions: items.len(),
        prepare: Usage::default(),
        answer: Usage::default(),
        compaction: mean(items.iter().filter_map(|item| item.compaction)),
    };
    items.iter().for_each(|item| cost.answer += item.usage);
    let of_column = prepared.iter().filter(|line| (&line.model, &line.method) == (&column.0, &column.1));
    of_column.for_each(|line| cost.prepare += line.usage);
    cost
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

impl fmt::Display for Report {
    /// Writes it as Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Questions: {}\n\n{} questions. Scores in percent.", self.suite, self.questions)?;
        self.write_scores(f)?;
        self.write_evidence(f)?;
        self.write_costs(f)?;
        self.published.iter().try_for_each(|table| self.write_published(table, f))?;
        writeln!(f, "\n## How it was scored\n")?;
        for ScorerDigest { name, version, judge_prompts_sha256 } in &self.scorers {
            match judge_prompts_sha256 {
                Some(sha256) => {
                    writeln!(
                        f,
                        "- {name}, version {version}, with a local judge (the run's own model, prompts {})",
                        &sha256[..12]
                    )?;
                }
                None => writeln!(f, "- {name}, version {version}")?,
            }
        }
        writeln!(f, "\nInstructions in the prompts: {}.", self.prompts_sha256.get(..12).unwrap_or("none"))?;
        if let Some(bytes) = self.peak_memory_bytes {
            writeln!(f, "Peak memory: {:.2} GB.", bytes as f64 / 1e9)?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "\nNot taken as it stands in the data:\n")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "- {note}"))
    }
}

impl Report {
    fn write_scores(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.scorers.iter().map(|scorer| scorer.name.as_str()).collect();
        write!(f, "\n| model | method | group | questions | failed |")?;
        names.iter().try_for_each(|name| write!(f, " {name} |"))?;
        writeln!(f, "\n|---|---|---|---:|---:|{}", "---:|".repeat(names.len()))?;
        for Row { model, method, group, questions, failed, scores, .. } in &self.rows {
            write!(f, "| {model} | {method} | {group} | {questions} | {failed} |")?;
            names.iter().try_for_each(|name| write!(f, " {} |", percent(scores.get(*name).copied())))?;
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_evidence(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.group == ALL && !row.evidence.is_empty()).collect();
        let names: Vec<String> =
            DEPTHS.iter().map(|k| format!("recall@{k}")).chain([format!("ndcg@{NDCG_DEPTH}")]).collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n## Was the evidence found?\n\nAmong the first k passages that searches brought.\n")?;
        write!(f, "| model | method |")?;
        names.iter().try_for_each(|name| write!(f, " {name} |"))?;
        writeln!(f, "\n|---|---|{}", "---:|".repeat(names.len()))?;
        for row in rows {
            write!(f, "| {} | {} |", row.model, row.method)?;
            names.iter().try_for_each(|name| write!(f, " {} |", percent(row.evidence.get(name).copied())))?;
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## What it took\n\nPreparation in all; the rest by question.\n")?;
        writeln!(
            f,
            "| model | method | prepare: calls | prompt tokens | cached | written | s | question: calls | prompt tokens | cached | written | s | compaction |"
        )?;
        writeln!(f, "|---|---|{}", "---:|".repeat(11))?;
        for Cost { model, method, questions, prepare, answer, compaction } in &self.costs {
            let each = |total: usize| total as f64 / (*questions).max(1) as f64;
            write!(f, "| {model} | {method} | {} | {} |", prepare.calls, prepare.prompt_tokens)?;
            write!(f, " {} | {} | {:.1} |", prepare.cached_tokens, prepare.output_tokens, prepare.seconds)?;
            write!(f, " {:.1} | {:.0} |", each(answer.calls), each(answer.prompt_tokens))?;
            write!(f, " {:.0} | {:.0} |", each(answer.cached_tokens), each(answer.output_tokens))?;
            writeln!(f, " {:.1} | {} |", answer.seconds / (*questions).max(1) as f64, percent(*compaction))?;
        }
        Ok(())
    }

    /// A paper's table with our rows on top, and on each line of it what differs.
    fn write_published(&self, table: &Table, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { paper, number, setup, columns, rows, .. } = table;
        writeln!(f, "\n## Beside {paper}, table {number}\n")?;
        writeln!(
            f,
            "| by | model | method | {} | what differs |",
            columns.iter().map(|name| name.replace(" | ", ", ")).collect::<Vec<_>>().join(" | ")
        )?;
        writeln!(f, "|---|---|---|{}---|", "---:|".repeat(columns.len()))?;
        for column in self.columns() {
            write!(f, "| here | {} | {} |", column.0, column.1)?;
            for name in columns {
                let (scorer, group) = name.split_once(" | ").unwrap_or((name, ALL));
                write!(f, " {} |", percent(self.number(&column, group, scorer)))?;
            }
            writeln!(f, " {} questions, {} |", self.questions, self.embedder)?;
        }
        for row in rows {
            write!(f, "| {paper} | {} | {} |", row.model, row.method)?;
            row.values.iter().try_for_each(|value| write!(f, " {value:.2} |"))?;
            writeln!(f, " {setup} |")?;
        }
        Ok(())
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value * 100.0))
}
