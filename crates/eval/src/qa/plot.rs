//! Plots of a report: score by category beside published numbers, evidence recall against k, tokens and seconds by
//! method, accuracy against compaction (MindGraph, figure 3), and the reliability of confidence.

use std::collections::BTreeSet;
use std::path::Path;

use super::item::Column;
use super::papers::{Published, Table};
use super::report::{ALL, DEPTHS, Report, SESSION};
use super::rows::{Cost, OutcomeRow};
use crate::Result;
use crate::chart::{Axis, Chart, Kind, Series};

/// Draws all plots for which the report has numbers.
///
/// # Errors
/// [`crate::Error::Write`], [`crate::Error::Draw`].
pub fn draw(report: &Report, folder: &Path) -> Result<()> {
    let columns = report.columns();
    for scorer in report.scorers.iter().map(|scorer| scorer.name.as_str()) {
        let of_scorer = |picture: &str| format!("{picture}-{}", scorer.replace(':', "-"));
        scores(report, &columns, scorer).draw(folder, &of_scorer("scores"))?;
        compaction(report, &columns, scorer).draw(folder, &of_scorer("compaction"))?;
    }
    recall(report, &columns, "passages", "").draw(folder, "recall")?;
    recall(report, &columns, "sessions", SESSION).draw(folder, "recall-by-session")?;
    reliability(report).draw(folder, "reliability")?;
    seconds(report).draw(folder, "seconds")?;
    tokens(report).draw(folder, "tokens")
}

/// The name of a column in a legend.
pub(super) fn name(column: &Column) -> String {
    format!("{}, {}", column.0, column.1)
}

/// The name of a paper's row in a legend.
fn published(table: &Table, row: &Published) -> String {
    format!("{} table {}: {}, {}", table.paper, table.number, row.model, row.method)
}

/// A scorer by category, beside the same methods' published numbers.
fn scores(report: &Report, columns: &[Column], scorer: &str) -> Chart {
    let scored = report.rows.iter().filter(|row| row.scores.contains_key(scorer)).map(|row| row.group.as_str());
    let mut groups: Vec<&str> = scored.collect::<BTreeSet<_>>().into_iter().filter(|group| *group != ALL).collect();
    groups.insert(0, ALL);
    let of = |column: &Column| {
        Series::named(name(column), groups.iter().map(|group| Some(report.number(column, group, scorer)? * 100.0)))
    };
    let mut series: Vec<Series> = columns.iter().map(of).collect();
    for table in &report.published {
        for row in table.rows.iter().filter(|row| columns.iter().any(|(_, method)| *method == row.method)) {
            let value = |group: &&str| row.values.get(table.place(scorer, group)?).copied();
            series.push(Series::named(published(table, row), groups.iter().map(value)).published());
        }
    }
    series.retain(|series| !series.points.is_empty());
    Chart {
        title: format!("{}: {scorer} by category", report.suite),
        kind: Kind::Bars,
        axis: Axis::Names("category".into(), groups.into_iter().map(str::to_owned).collect()),
        values: format!("{scorer}, %"),
        series,
    }
}

/// Accuracy against the share of the text that the responder reads.
fn compaction(report: &Report, columns: &[Column], scorer: &str) -> Chart {
    let mut series = Vec::new();
    for column in columns {
        let number = |name| Some(report.number(column, ALL, name)? * 100.0);
        if let Some(point) = number("compaction").zip(number(scorer)) {
            series.push(Series { name: name(column), points: vec![point], is_published: false });
        }
    }
    for table in &report.published {
        let Some(places) = table.place("compaction", ALL).zip(table.place(scorer, ALL)) else { continue };
        for row in &table.rows {
            if let Some(point) = row.values.get(places.0).copied().zip(row.values.get(places.1).copied()) {
                series.push(Series { name: published(table, row), points: vec![point], is_published: true });
            }
        }
    }
    Chart {
        title: format!("{}: {scorer} against compaction", report.suite),
        kind: Kind::Points,
        axis: Axis::Numbers("tokens of the first answering prompt, % of the text's tokens".into()),
        values: format!("{scorer}, %"),
        series,
    }
}

/// Recall of evidence in passages, or in their sessions.
fn recall(report: &Report, columns: &[Column], of: &str, before: &str) -> Chart {
    let at = |column: &Column, k: &usize| Some(report.number(column, ALL, &format!("{before}recall@{k}"))? * 100.0);
    let line = |column: &Column| Series::named(name(column), DEPTHS.iter().map(|k| at(column, k)));
    Chart {
        title: format!("{}: evidence among the first k {of} that were brought", report.suite),
        kind: Kind::Lines,
        axis: Axis::Names(format!("k, {of}"), DEPTHS.iter().map(usize::to_string).collect()),
        values: "evidence recall at k, %".into(),
        series: columns.iter().map(line).filter(|series| !series.points.is_empty()).collect(),
    }
}

/// The share of answerable questions against the stated confidence; nothing where no method states one.
fn reliability(report: &Report) -> Chart {
    let rows = report.outcomes.iter().filter(|row| row.group == ALL && !row.reliability.is_empty());
    let line = |row: &OutcomeRow| Series {
        name: name(&(row.model.clone(), row.method.clone())),
        points: row.reliability.iter().map(|bin| (bin.stated * 100.0, bin.observed * 100.0)).collect(),
        is_published: false,
    };
    let mut series: Vec<Series> = rows.map(line).collect();
    if !series.is_empty() {
        let (name, points) = ("as stated".to_owned(), vec![(0.0, 0.0), (100.0, 100.0)]);
        series.push(Series { name, points, is_published: true });
    }
    Chart {
        title: format!("{}: reliability of the confidence", report.suite),
        kind: Kind::Lines,
        axis: Axis::Numbers("confidence that the question is answerable, %".into()),
        values: "answerable questions, %".into(),
        series,
    }
}

/// Wall-clock seconds if they are known for all, else those of calls, as in the report's table.
fn seconds(report: &Report) -> Chart {
    let costs = &report.costs;
    let by_clock = costs.iter().all(|cost| cost.prepare_seconds.is_some() && cost.answer_seconds.is_some());
    let prepare = |cost: &Cost| cost.prepare_seconds.filter(|_| by_clock).unwrap_or(cost.prepare.seconds);
    let answer = |cost: &Cost| cost.answer_seconds.filter(|_| by_clock).unwrap_or(cost.answer.seconds);
    let parts = [
        by_question(costs, "preparation, shared out among the questions", prepare),
        by_question(costs, "answering", answer),
    ];
    let what = if by_clock { "seconds by the clock" } else { "seconds of calls, which run side by side" };
    by_method(report, format!("{}: {what}, by method", report.suite), "seconds per question", parts.into())
}

fn tokens(report: &Report) -> Chart {
    let computed = |usage: &calls::Usage| usage.prompt_tokens.saturating_sub(usage.cached_tokens) as f64;
    let of = |part: &str, usage: fn(&Cost) -> &calls::Usage| {
        [
            by_question(&report.costs, &format!("{part}: read and computed"), |cost| computed(usage(cost))),
            by_question(&report.costs, &format!("{part}: read from the cache"), |cost| {
                usage(cost).cached_tokens as f64
            }),
            by_question(&report.costs, &format!("{part}: written"), |cost| usage(cost).output_tokens as f64),
        ]
    };
    let parts = [of("preparation", |cost| &cost.prepare), of("answering", |cost| &cost.answer)].concat();
    by_method(report, format!("{}: tokens by method", report.suite), "tokens per question", parts)
}

/// A number per question of each model and method.
fn by_question(costs: &[Cost], name: &str, value: impl Fn(&Cost) -> f64) -> Series {
    Series::named(name, costs.iter().map(|cost| Some(value(cost) / cost.questions.max(1) as f64)))
}

/// Bars by method; by model and method where there are several models.
fn by_method(report: &Report, title: String, values: &str, series: Vec<Series>) -> Chart {
    let columns = report.columns();
    let one_model = columns.iter().all(|column| column.0 == columns[0].0);
    let called = |column: &Column| if one_model { column.1.clone() } else { name(column) };
    let what = match columns.first() {
        Some((model, _)) if one_model => format!("method, with {model}"),
        _ => "model and method".to_owned(),
    };
    let axis = Axis::Names(what, columns.iter().map(called).collect());
    Chart { title, kind: Kind::Bars, axis, values: values.into(), series }
}
