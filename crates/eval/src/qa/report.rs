//! The numbers of a run, computed from its manifest and results alone ([`super::page`] prints them as Markdown).

use std::collections::{BTreeMap, BTreeSet};

use calls::Usage;
use memory::grounding::{auroc, brier, reliability};
use serde::Serialize;

use super::folder::{QaManifest, ScorerDigest};
use super::item::{Column, Item, Measured, Prepared};
use super::margin::margin;
use super::outcome::{Grounding, Outcome};
use super::papers::Table;
use super::plan::Plan;
use super::rows::{Answered, Cost, OutcomeRow, Row, StepRow};
use crate::score::{Found, Scorer, ndcg_at, recall_at};
use crate::{Result, StepEndings, endings};

/// The group of all questions.
pub(super) const ALL: &str = "all";
/// The depths at which evidence recall is reported.
pub(super) const DEPTHS: [usize; 7] = [1, 3, 5, 10, 20, 30, 50];
/// The prefix of numbers by session.
pub(super) const SESSION: &str = "session_";
/// Questions of which any, or all, of the evidence was retrieved (LongMemEval).
pub(super) const RECALL_ANY: &str = "recall_any";
pub(super) const RECALL_ALL: &str = "recall_all";
/// Evidence recall at any depth: of all retrieved passages.
pub(super) const RECALL_OF_ALL: &str = "recall@all";
/// Answers that a report prints.
const MAX_ANSWERS: usize = 24;
/// The depth at which nDCG of evidence is reported.
pub(super) const NDCG_DEPTH: usize = 10;

/// The numbers of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub suite: String,
    /// Questions asked of every model and method.
    pub questions: usize,
    pub embedder: String,
    pub scorers: Vec<ScorerDigest>,
    /// The judge model, if it is not the run's own.
    pub judge: Option<String>,
    pub rows: Vec<Row>,
    /// Right, wrong and abstaining answers, for suites that count them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<OutcomeRow>,
    pub costs: Vec<Cost>,
    /// How the replies of each step ended, preparation included.
    pub endings: Vec<StepRow>,
    /// The answers themselves, if they are few enough to be read.
    pub answers: Vec<Answered>,
    /// The set-up, in words.
    pub setup: String,
    /// Published tables on the suite.
    pub published: Vec<Table>,
    pub notes: Vec<String>,
    pub prompts_sha256: String,
    pub peak_memory_bytes: Option<u64>,
}

impl Report {
    /// Computes the numbers from results.
    ///
    /// # Errors
    /// [`crate::Error::Plan`] for a manifest with unknown names.
    pub fn new(manifest: &QaManifest, prepared: &[Prepared], items: &[Item], measured: &[Measured]) -> Result<Report> {
        let columns: BTreeSet<Column> = items.iter().map(Item::column).collect();
        let of = |column: &Column| items.iter().filter(|item| item.column() == *column).collect::<Vec<_>>();
        let questions: BTreeSet<_> = items.iter().map(|item| (&item.case, &item.question.id)).collect();
        let scorers = manifest.plan.scorers()?;
        let rows = columns.iter().flat_map(|column| rows(column, &of(column), &scorers)).collect();
        let costs = columns.iter().map(|column| cost(column, &of(column), prepared, measured)).collect();
        let outcomes = columns.iter().flat_map(|column| outcome_rows(column, &of(column))).collect();
        let endings = columns.iter().flat_map(|column| step_rows(column, &of(column), prepared)).collect();
        Ok(Report {
            suite: manifest.plan.suite.clone(),
            questions: questions.len(),
            embedder: manifest.plan.embedder.clone(),
            scorers: scorers.into_iter().map(ScorerDigest::of).collect(),
            judge: manifest.plan.judge.clone().or_else(|| manifest.plan.researcher.clone()),
            rows,
            outcomes,
            costs,
            endings,
            answers: if items.len() <= MAX_ANSWERS { answers(items) } else { Vec::new() },
            setup: setup(&manifest.plan),
            published: Table::about(&manifest.plan.suite)?,
            notes: manifest.notes.clone(),
            prompts_sha256: manifest.prompts_sha256.clone(),
            peak_memory_bytes: manifest.peak_memory_bytes,
        })
    }

    /// A mean, from 0 to 1: of a scorer, of `recall@k` and similar numbers, or `compaction`.
    pub fn number(&self, column: &Column, group: &str, name: &str) -> Option<f64> {
        let is = |model: &str, method: &str| (model, method) == (&column.0, &column.1);
        if name == "compaction" {
            return self.costs.iter().find(|cost| is(&cost.model, &cost.method))?.compaction;
        }
        let row = self.row(column, group)?;
        row.scores.get(name).or_else(|| row.evidence.get(name)).copied()
    }

    /// Half the width of the 95 % confidence interval of a scorer's mean, from 0 to 1, if there is one.
    pub fn margin(&self, column: &Column, group: &str, scorer: &str) -> Option<f64> {
        self.row(column, group)?.margins.get(scorer).copied()
    }

    fn row(&self, column: &Column, group: &str) -> Option<&Row> {
        self.rows.iter().find(|row| (&row.model, &row.method) == (&column.0, &column.1) && row.group == group)
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
        let scored = scorers.iter().map(|scorer| {
            let name = scorer.to_string();
            let values = items.iter().filter_map(|item| item.scores.get(&name)).map(|mark| mark.value);
            let values: Vec<f64> = values.collect();
            (name, values)
        });
        let scored: Vec<(String, Vec<f64>)> = scored.collect();
        let by_scorer = |number: &dyn Fn(&[f64]) -> Option<f64>| {
            let named = scored.iter().filter_map(|(name, values)| Some((name.clone(), number(values)?)));
            named.collect::<BTreeMap<String, f64>>()
        };
        rows.push(Row {
            model: column.0.clone(),
            method: column.1.clone(),
            group: group.to_owned(),
            questions: items.len(),
            failed: items.iter().filter(|item| item.failed.is_some()).count(),
            scores: by_scorer(&|values: &[f64]| mean(values.iter().copied())),
            margins: by_scorer(&margin),
            evidence: evidence(&items),
        });
    }
    rows
}

/// Bins of a reliability diagram, and questions of a bin.
const MAX_BINS: usize = 10;
const LEAST_IN_BIN: usize = 10;

/// A row for all questions and one for each group, over the items that have an outcome.
fn outcome_rows(column: &Column, items: &[&Item]) -> Vec<OutcomeRow> {
    let items: Vec<&Item> = items.iter().copied().filter(|item| item.outcome.is_some()).collect();
    let groups: BTreeSet<&str> = items.iter().flat_map(|item| &item.question.groups).map(String::as_str).collect();
    let groups = [ALL].into_iter().filter(|_| !items.is_empty()).chain(groups);
    let row = |group: &str| {
        let in_group = |item: &&Item| group == ALL || item.question.groups.iter().any(|of| of == group);
        let items: Vec<&Item> = items.iter().copied().filter(in_group).collect();
        let count = |wanted| items.iter().filter(|item| item.outcome == Some(wanted)).count();
        let statements = |of: fn(&Grounding) -> usize| -> usize {
            items.iter().filter_map(|item| item.grounding.as_ref()).map(of).sum()
        };
        let confident = || items.iter().filter_map(|item| Some((item.grounding?.confidence?, item)));
        let answered = items.iter().filter(|item| item.outcome != Some(Outcome::Abstained)).filter_map(|item| {
            let grounding = item.grounding?;
            Some((grounding.probability.or(grounding.confidence)?, item))
        });
        let is_correct = |item: &&&Item| {
            let wanted = if item.question.is_unanswerable() { Outcome::Abstained } else { Outcome::Right };
            item.outcome == Some(wanted)
        };
        let answerable: Vec<(f64, bool)> =
            confident().map(|(score, item)| (score, !item.question.is_unanswerable())).collect();
        // Without both kinds there is nothing to calibrate.
        let both = auroc(&answerable);
        OutcomeRow {
            model: column.0.clone(),
            method: column.1.clone(),
            group: group.to_owned(),
            questions: items.len(),
            right: count(Outcome::Right),
            wrong: count(Outcome::Wrong),
            abstained: count(Outcome::Abstained),
            correct: items.iter().filter(is_correct).count(),
            supported: statements(|found| found.supported),
            contradicted: statements(|found| found.contradicted),
            unsupported: statements(|found| found.unsupported),
            quoted: statements(|found| found.quoted),
            supported_wrong: items
                .iter()
                .filter(|item| item.outcome == Some(Outcome::Wrong))
                .filter_map(|item| item.grounding.as_ref())
                .map(|found| found.supported)
                .sum(),
            auroc_answerable: both,
            auroc_right: auroc(
                &answered.map(|(score, item)| (score, item.outcome == Some(Outcome::Right))).collect::<Vec<_>>(),
            ),
            brier_answerable: both.and_then(|_| brier(&answerable)),
            reliability: match both {
                Some(_) => reliability(&answerable, (answerable.len() / LEAST_IN_BIN).clamp(1, MAX_BINS)),
                None => Vec::new(),
            },
        }
    };
    groups.map(row).collect()
}

fn evidence(items: &[&Item]) -> BTreeMap<String, f64> {
    let sessions = ranking(items.iter().filter_map(|item| item.sessions()).collect());
    let sessions = sessions.into_iter().map(|(name, value)| (format!("{SESSION}{name}"), value));
    ranking(items.iter().filter_map(|item| item.evidence()).collect()).into_iter().chain(sessions).collect()
}

/// The evidence numbers, question by question.
fn ranking(found: Vec<Vec<Found>>) -> BTreeMap<String, f64> {
    let recall = |k: &usize| Some((format!("recall@{k}"), mean(found.iter().map(|found| recall_at(*k, found)))?));
    let ndcg = |k: &usize| Some((format!("ndcg@{k}"), mean(found.iter().map(|found| ndcg_at(*k, found)))?));
    let all = |k: usize, found: &[Found]| recall_at(k, found) == 1.0;
    let any = |k: usize, found: &[Found]| recall_at(k, found) > 0.0;
    let share = |name: &str, k: usize, holds: &dyn Fn(usize, &[Found]) -> bool| {
        Some((format!("{name}@{k}"), mean(found.iter().map(|found| f64::from(holds(k, found))))?))
    };
    let shares = DEPTHS.iter().flat_map(|k| [share(RECALL_ANY, *k, &any), share(RECALL_ALL, *k, &all)]).flatten();
    let read = mean(found.iter().map(|found| recall_at(usize::MAX, found)));
    let recalls = DEPTHS.iter().filter_map(recall).chain(read.map(|value| (RECALL_OF_ALL.to_owned(), value)));
    recalls.chain(shares).chain(DEPTHS.iter().filter_map(ndcg)).collect()
}

fn cost(column: &Column, items: &[&Item], prepared: &[Prepared], measured: &[Measured]) -> Cost {
    let mut cost = Cost {
        model: column.0.clone(),
        method: column.1.clone(),
        questions: items.len(),
        prepare: Usage::default(),
        prepare_seconds: Some(0.0),
        prepare_fallbacks: 0,
        answer: Usage::default(),
        answer_seconds: None,
        answer_fallbacks: items.iter().map(|item| item.fallbacks).sum(),
        peak_memory_bytes: None,
        compaction: mean(items.iter().filter_map(|item| item.compaction)),
    };
    items.iter().for_each(|item| cost.answer += item.usage);
    let of_column = prepared.iter().filter(|line| (&line.model, &line.method) == (&column.0, &column.1));
    of_column.for_each(|line| cost.prepare += line.usage);
    let of_column = |line: &&Measured| (&line.scope.model, &line.scope.method) == (&column.0, &column.1);
    let measured: Vec<&Measured> = measured.iter().filter(of_column).collect();
    for line in &measured {
        cost.peak_memory_bytes = cost.peak_memory_bytes.max(line.peak_memory_bytes);
        if line.scope.question.is_none() {
            cost.prepare_seconds = cost.prepare_seconds.zip(line.seconds).map(|(sum, seconds)| sum + seconds);
            cost.prepare_fallbacks += line.fallbacks;
        }
    }
    cost.answer_seconds = answer_seconds(items, &measured);
    cost
}

/// Wall-clock seconds of the questions; none if some of them have no time, as in a run that was resumed with another width.
fn answer_seconds(items: &[&Item], measured: &[&Measured]) -> Option<f64> {
    let seconds: BTreeMap<(&str, &str), f64> = measured
        .iter()
        .filter_map(|line| Some(((line.scope.case.as_str(), line.scope.question.as_deref()?), line.seconds?)))
        .collect();
    items.iter().map(|item| seconds.get(&(item.case.as_str(), item.question.id.as_str())).copied()).sum()
}

fn step_rows(column: &Column, items: &[&Item], prepared: &[Prepared]) -> Vec<StepRow> {
    let mut steps = StepEndings::new();
    let of_column = prepared.iter().filter(|line| (&line.model, &line.method) == (&column.0, &column.1));
    of_column.for_each(|line| endings::add(&mut steps, &line.endings));
    items.iter().for_each(|item| endings::add(&mut steps, &item.endings));
    let row = |(step, endings)| StepRow { model: column.0.clone(), method: column.1.clone(), step, endings };
    steps.into_iter().map(row).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

fn answers(items: &[Item]) -> Vec<Answered> {
    let mut answers: Vec<Answered> = items
        .iter()
        .map(|item| Answered {
            case: item.case.clone(),
            question: item.question.text.clone(),
            golds: item.question.golds.clone(),
            model: item.model.clone(),
            method: item.method.clone(),
            answer: item.answer.clone(),
            citations: item.citations.clone(),
            failed: item.failed.clone(),
        })
        .collect();
    answers.sort_by(|a, b| (&a.case, &a.question, &a.model).cmp(&(&b.case, &b.question, &b.model)));
    answers
}

/// The set-up of a run besides model and method, for comparison with a paper's.
fn setup(plan: &Plan) -> String {
    let mut parts =
        vec![plan.embedder.clone(), format!("layout {}", plan.layout), format!("temperature {}", plan.temperature)];
    let of = |name: &str, value: Option<usize>| value.map(|value| format!("{name} {value}"));
    parts.extend(of("pages of tokens", plan.page_tokens));
    parts.extend(of("evidence tokens", plan.evidence_tokens));
    parts.extend(of("k", plan.k));
    let by_method = |name: &str, values: &BTreeMap<String, usize>| {
        let values: Vec<String> = values.iter().map(|(method, value)| format!("{method} {value}")).collect();
        (!values.is_empty()).then(|| format!("{name} {}", values.join(", ")))
    };
    parts.extend(
        by_method("pages of tokens by method:", &plan.method_page_tokens).filter(|_| plan.page_tokens.is_none()),
    );
    parts.extend(by_method("k by method:", &plan.method_k).filter(|_| plan.k.is_none()));
    parts.extend(plan.yarn.map(|factor| format!("YaRN {factor}")));
    parts.extend(of("W", plan.window));
    parts.extend(of("rounds", plan.max_iterations));
    parts.extend(plan.search.as_ref().map(|tool| format!("rag by {tool}")));
    parts.extend(plan.memcot_store.as_ref().map(|store| format!("memcot over {store}")));
    parts.extend((!plan.layers.is_empty()).then(|| format!("comorag's layers {}", plan.layers.join(", "))));
    parts.extend(plan.ruler.as_ref().map(|ruler| format!("{} tokens", ruler.length_tokens)));
    parts.extend(plan.quantise.clone());
    let role = |name: &str, model: &Option<String>| model.as_ref().map(|model| format!("{name} {model}"));
    parts.extend(role("memorizer", &plan.memorizer));
    parts.extend(role("researcher", &plan.researcher));
    parts.extend(role("judge", &plan.judge));
    parts.extend(role("builder", &plan.builder));
    parts.extend(plan.preset.as_ref().map(|preset| format!("preset {preset}")));
    parts.join("; ")
}
