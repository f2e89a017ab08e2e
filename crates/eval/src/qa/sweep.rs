//! Plots of several runs that differ in one parameter: score and evidence recall against rounds and pages (GAM, figure
//! 2), and against W and K (MemCoT, figure 4).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use memory::Settings;

use super::item::Column;
use super::plan::Plan;
use super::plot::name;
use super::report::{ALL, RECALL_OF_ALL, Report};
use super::reporting::read_report;
use crate::chart::{Axis, Chart, Kind, Series};
use crate::{Error, Result};

/// A parameter in which runs may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knob {
    Rounds,
    K,
    Window,
}

impl Knob {
    const ALL: [Knob; 3] = [Knob::Rounds, Knob::K, Knob::Window];

    fn name(self) -> &'static str {
        match self {
            Knob::Rounds => "rounds",
            Knob::K => "k",
            Knob::Window => "window",
        }
    }

    /// Its axis label.
    fn axis(self) -> &'static str {
        match self {
            Knob::Rounds => "rounds of research, at most",
            Knob::K => "pages or passages that a search brings, k",
            Knob::Window => "turns on either side of a find, W",
        }
    }

    /// Its value for a method; none if the method does not have it.
    fn of(self, settings: &Settings) -> Option<usize> {
        let option = match self {
            Knob::Rounds => "max_iterations",
            Knob::K => "k",
            Knob::Window => "window",
        };
        let value = settings.method.options(settings).get(option)?.as_u64()?;
        usize::try_from(value).ok()
    }
}

/// One model's and method's numbers in one run.
struct Run {
    column: Column,
    settings: Settings,
    /// The other parameters of the run.
    rest: String,
    score: Option<f64>,
    recall: Option<f64>,
}

/// Plots several finished runs of one suite in `folder`; returns the names of the plots.
///
/// # Errors
/// [`Error::NotComparable`] for runs of several suites, or runs without a difference that can be plotted; those of the
/// files.
pub fn sweep(runs: &[PathBuf], folder: &Path) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let (mut suites, mut scorer) = (BTreeSet::new(), String::new());
    for run in runs {
        let (plan, report) = read_report(run)?;
        suites.insert(plan.suite.clone());
        scorer = report.scorers.first().map(|scorer| scorer.name.clone()).unwrap_or_default();
        for column in report.columns() {
            all.push(Run::of(column, &plan, &report, &scorer)?);
        }
    }
    if suites.len() > 1 {
        let suites = suites.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Error::NotComparable { problem: format!("they are about {suites}") });
    }
    let suite = suites.into_iter().next().unwrap_or_default();
    let mut drawn = Vec::new();
    for knob in Knob::ALL {
        let measures: [(&str, String, Value); 2] = [
            ("score", scorer.clone(), |run| run.score),
            ("recall", "evidence recall of all that was brought".to_owned(), |run| run.recall),
        ];
        for (measure, what, value) in measures {
            let chart = Chart {
                title: format!("{suite}: {what} against {}", knob.name()),
                kind: Kind::Lines,
                axis: Axis::Numbers(knob.axis().to_owned()),
                values: format!("{what}, %"),
                series: series(&all, knob, value),
            };
            if !chart.series.is_empty() {
                let name = format!("{measure}-by-{}", knob.name());
                chart.draw(folder, &name)?;
                drawn.push(name);
            }
        }
    }
    if drawn.is_empty() {
        let problem = "nothing but rounds, k or window of one model and method may differ, and one of them must";
        return Err(Error::NotComparable { problem: problem.into() });
    }
    Ok(drawn)
}

/// A number of a run.
type Value = fn(&Run) -> Option<f64>;

impl Run {
    fn of(column: Column, plan: &Plan, report: &Report, scorer: &str) -> Result<Run> {
        let settings = plan.settings(column.1.parse().map_err(Error::Plan)?)?;
        // Other methods and models of the run, and the path of the data, have no effect.
        let bare = Plan {
            data: PathBuf::new(),
            methods: Vec::new(),
            models: Vec::new(),
            k: None,
            method_k: BTreeMap::new(),
            window: None,
            max_iterations: None,
            ..plan.clone()
        };
        let rest = serde_json::to_string(&bare).map_err(|error| Error::Plan(error.to_string()))?;
        let score = report.number(&column, ALL, scorer);
        let recall = report.number(&column, ALL, RECALL_OF_ALL);
        Ok(Run { column, settings, rest, score, recall })
    }

    /// The parameters that must be equal for runs on one line, as in the legend; and the key that splits equal legends.
    fn line(&self, knob: Knob) -> (String, &str) {
        let others = Knob::ALL.into_iter().filter(|other| *other != knob);
        let known = others.filter_map(|other| Some(format!(", {} {}", other.name(), other.of(&self.settings)?)));
        (name(&self.column) + &known.collect::<String>(), &self.rest)
    }
}

/// A line for each model and method that was run with several values of a parameter and no other difference.
fn series(runs: &[Run], knob: Knob, value: Value) -> Vec<Series> {
    let mut lines: BTreeMap<(String, &str), BTreeMap<usize, f64>> = BTreeMap::new();
    for run in runs {
        if let Some((at, value)) = knob.of(&run.settings).zip(value(run)) {
            lines.entry(run.line(knob)).or_default().insert(at, value * 100.0);
        }
    }
    let several = lines.into_iter().filter(|(_, points)| points.len() > 1);
    let points = |points: BTreeMap<usize, f64>| points.into_iter().map(|(at, value)| (at as f64, value)).collect();
    several.map(|((name, _), line)| Series { name, points: points(line), is_published: false }).collect()
}
