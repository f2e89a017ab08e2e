//! Pictures of a report, as SVG: score by category beside published numbers, evidence recall against k, tokens and
//! seconds by method, accuracy against compaction.
//!
//! There is no PNG: text in bitmaps would need fonts, which are the system's or would have to be ours.

use std::fs;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::item::Column;
use super::report::{ALL, DEPTHS, Report};
use crate::{Error, Result};

const SIZE: (u32, u32) = (960, 480);
const FONT: (&str, u32) = ("sans-serif", 14);

/// A name, and a value for each place on the axis.
type Series = (String, Vec<Option<f64>>);

/// Draws all pictures for which the report has numbers.
///
/// # Errors
/// [`Error::Write`], [`Error::Draw`].
pub fn draw(report: &Report, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::writing(folder))?;
    let columns = report.columns();
    let name = |column: &Column| format!("{}, {}", column.0, column.1);
    if let Some(scorer) = report.scorers.first().map(|scorer| scorer.name.as_str()) {
        scores(report, &columns, scorer, folder)?;
    }
    let recall: Vec<Series> = columns
        .iter()
        .map(|column| {
            (name(column), DEPTHS.iter().map(|k| report.number(column, ALL, &format!("recall@{k}"))).collect())
        })
        .collect();
    if recall.iter().any(|(_, values)| values.iter().any(Option::is_some)) {
        let depths: Vec<String> = DEPTHS.iter().map(usize::to_string).collect();
        lines(&folder.join("recall.svg"), "Evidence recall at k, %", &depths, &percents(recall))?;
    }
    let each = |value: f64, questions: usize| Some(value / questions.max(1) as f64);
    let costs = |value: fn(&calls::Usage) -> f64| -> Vec<Series> {
        let cost = |cost: &super::report::Cost| {
            let column = (cost.model.clone(), cost.method.clone());
            (name(&column), vec![each(value(&cost.prepare), cost.questions), each(value(&cost.answer), cost.questions)])
        };
        report.costs.iter().map(cost).collect()
    };
    let parts = ["prepare".to_owned(), "answer".to_owned()];
    bars(&folder.join("seconds.svg"), "Seconds of calls by question", &parts, &costs(|usage| usage.seconds))?;
    let tokens = costs(|usage| {
        (usage.prompt_tokens - usage.cached_tokens.min(usage.prompt_tokens) + usage.output_tokens) as f64
    });
    bars(&folder.join("tokens.svg"), "Computed tokens by question", &parts, &tokens)
}

/// The first scorer by category, beside the same methods' published numbers.
fn scores(report: &Report, columns: &[Column], scorer: &str, folder: &Path) -> Result<()> {
    let mut groups: Vec<String> = report.rows.iter().map(|row| row.group.clone()).collect();
    groups.dedup();
    groups.sort();
    groups.dedup();
    let ours = columns.iter().map(|column| {
        let values = groups.iter().map(|group| report.number(column, group, scorer)).collect();
        (format!("{}, {}", column.0, column.1), values)
    });
    let mut series: Vec<Series> = percents(ours.collect());
    for table in &report.published {
        let methods = table.rows.iter().filter(|row| columns.iter().any(|(_, method)| *method == row.method));
        for row in methods {
            let value = |group: &String| {
                let place = table.columns.iter().position(|column| *column == format!("{scorer} | {group}"))?;
                row.values.get(place).copied()
            };
            let values: Vec<Option<f64>> = groups.iter().map(value).collect();
            if values.iter().any(Option::is_some) {
                series.push((format!("{} table {}: {}, {}", table.paper, table.number, row.model, row.method), values));
            }
        }
    }
    bars(&folder.join("scores.svg"), &format!("{scorer} by category, %"), &groups, &series)
}

fn percents(series: Vec<Series>) -> Vec<Series> {
    let percent =
        |(name, values): Series| (name, values.into_iter().map(|value| value.map(|value| value * 100.0)).collect());
    series.into_iter().map(percent).collect()
}

fn bars(path: &Path, title: &str, places: &[String], series: &[Series]) -> Result<()> {
    picture(path, title, places, series, |chart, number, color, values| {
        let width = 0.8 / series.len().max(1) as f64;
        let bar = |(place, value): (usize, &Option<f64>)| {
            let left = place as f64 - 0.4 + number as f64 * width;
            value.map(|value| Rectangle::new([(left, 0.0), (left + width * 0.95, value)], color.filled()))
        };
        chart.draw_series(values.iter().enumerate().filter_map(bar))
    })
}

fn lines(path: &Path, title: &str, places: &[String], series: &[Series]) -> Result<()> {
    picture(path, title, places, series, |chart, _, color, values| {
        let points = values.iter().enumerate().filter_map(|(place, value)| Some((place as f64, (*value)?)));
        chart.draw_series(LineSeries::new(points, color.stroke_width(2)))
    })
}

type Chart<'a> = ChartContext<
    'a,
    SVGBackend<'a>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;
type Drawn<'c, 'a> =
    std::result::Result<&'c mut plotters::chart::SeriesAnno<'a, SVGBackend<'a>>, DrawingAreaErrorKind<std::io::Error>>;

/// A chart with one place on the axis for each name, and a legend.
fn picture(
    path: &Path,
    title: &str,
    places: &[String],
    series: &[Series],
    draw: impl for<'c, 'a> Fn(&'c mut Chart<'a>, usize, RGBAColor, &[Option<f64>]) -> Drawn<'c, 'a>,
) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| Error::Draw { path: path.to_owned(), problem: error.to_string() };
    let most = series.iter().flat_map(|(_, values)| values).flatten().copied().fold(0.0, f64::max);
    let root: DrawingArea<SVGBackend<'_>, Shift> = SVGBackend::new(path, SIZE).into_drawing_area();
    let drawn = (|| {
        root.fill(&WHITE)?;
        let mut chart: Chart<'_> = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(-0.5..places.len() as f64 - 0.5, 0.0..(most * 1.1).max(1e-9))?;
        let label = |place: &f64| {
            let here = (0..places.len()).find(|number| (place - *number as f64).abs() < 1e-6);
            here.map_or_else(String::new, |number| places[number].clone())
        };
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().x_labels(places.len() * 2 + 1).x_label_formatter(&label).label_style(FONT).draw()?;
        for (number, (name, values)) in series.iter().enumerate() {
            let color = Palette99::pick(number).to_rgba();
            draw(&mut chart, number, color, values)?
                .label(name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).label_font(FONT).draw()?;
        root.present()
    })();
    drawn.map_err(|error: DrawingAreaErrorKind<std::io::Error>| failed(&error))
}
