//! Pictures of a report: score by category beside published numbers, evidence recall against k, tokens and seconds by
//! method, and accuracy against compaction (MindGraph, figure 3).

use std::path::Path;

use super::item::Column;
use super::report::{ALL, Cost, DEPTHS, Report};
use crate::Result;
use crate::chart::{Axis, Chart, Kind, Series};

/// Draws all pictures for which the report has numbers.
///
/// # Errors
/// [`crate::Error::Write`], [`crate::Error::Draw`].
pub fn draw(report: &Report, folder: &Path) -> Result<()> {
    let columns = report.columns();
    if let Some(scorer) = report.scorers.first().map(|scorer| scorer.name.as_str()) {
        scores(report, &columns, scorer).draw(folder, "scores")?;
        compaction(report, &columns, scorer).draw(folder, "compaction")?;
    }
    recall(report, &columns).draw(folder, "recall")?;
    costs(report, "Seconds of calls by question", |usage| usage.seconds).draw(folder, "seconds")?;
    let computed = |usage: &calls::Usage| {
        (usage.prompt_tokens - usage.cached_tokens.min(usage.prompt_tokens) + usage.output_tokens) as f64
    };
    costs(report, "Computed tokens by question", computed).draw(folder, "tokens")
}

/// What a column is called in a legend.
pub(super) fn name(column: &Column) -> String {
    format!("{}, {}", column.0, column.1)
}

/// The first scorer by category, beside the same methods' published numbers.
fn scores(report: &Report, columns: &[Column], scorer: &str) -> Chart {
    let mut groups: Vec<String> = report.rows.iter().map(|row| row.group.clone()).collect();
    groups.sort();
    groups.dedup();
    let of = |column: &Column| {
        Series::named(name(column), groups.iter().map(|group| Some(report.number(column, group, scorer)? * 100.0)))
    };
    let mut series: Vec<Series> = columns.iter().map(of).collect();
    for table in &report.published {
        for row in table.rows.iter().filter(|row| columns.iter().any(|(_, method)| *method == row.method)) {
            let value = |group: &String| row.values.get(table.place(scorer, group)?).copied();
            let title = format!("{} table {}: {}, {}", table.paper, table.number, row.model, row.method);
            series.push(Series::named(title, groups.iter().map(value)));
        }
    }
    series.retain(|series| !series.points.is_empty());
    Chart { title: format!("{scorer} by category, %"), kind: Kind::Bars, axis: Axis::Names(groups), series }
}

/// How much of the text answers were given from, and how right they were.
fn compaction(report: &Report, columns: &[Column], scorer: &str) -> Chart {
    let mut series = Vec::new();
    for column in columns {
        let number = |name| Some(report.number(column, ALL, name)? * 100.0);
        if let Some(point) = number("compaction").zip(number(scorer)) {
            series.push(Series { name: name(column), points: vec![point] });
        }
    }
    for table in &report.published {
        let Some(places) = table.place("compaction", ALL).zip(table.place(scorer, ALL)) else { continue };
        for row in &table.rows {
            let Some(point) = row.values.get(places.0).copied().zip(row.values.get(places.1).copied()) else {
                continue;
            };
            let name = format!("{} table {}: {}, {}", table.paper, table.number, row.model, row.method);
            series.push(Series { name, points: vec![point] });
        }
    }
    let axis = Axis::Numbers("tokens of the first answering prompt, % of the text's".into());
    Chart { title: format!("{scorer}, %, against compaction"), kind: Kind::Points, axis, series }
}

fn recall(report: &Report, columns: &[Column]) -> Chart {
    let at = |column: &Column, k: &usize| Some(report.number(column, ALL, &format!("recall@{k}"))? * 100.0);
    let of = |column: &Column| Series::named(name(column), DEPTHS.iter().map(|k| at(column, k)));
    let axis = Axis::Names(DEPTHS.iter().map(usize::to_string).collect());
    let series = columns.iter().map(of).filter(|series| !series.points.is_empty()).collect();
    Chart { title: "Evidence recall at k, %".into(), kind: Kind::Lines, axis, series }
}

fn costs(report: &Report, title: &str, value: fn(&calls::Usage) -> f64) -> Chart {
    let of = |cost: &Cost| {
        let each = |usage| Some(value(usage) / cost.questions.max(1) as f64);
        Series::named(name(&(cost.model.clone(), cost.method.clone())), [each(&cost.prepare), each(&cost.answer)])
    };
    let axis = Axis::Names(vec!["prepare".into(), "answer".into()]);
    Chart { title: title.into(), kind: Kind::Bars, axis, series: report.costs.iter().map(of).collect() }
}
