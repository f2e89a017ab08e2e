//! Scoring a run again, and writing its report with the plots.

use std::path::Path;

use super::folder::{LEFT_OUT, items, manifest, measured};
use super::item::{Item, Prepared};
use super::plan::Plan;
use super::plot::draw;
use super::report::Report;
use crate::run_folder::{put, put_json};
use crate::{Error, Result};

/// Scores a run again, and writes its report and pictures.
///
/// # Errors
/// Those of its files.
pub fn write_report(run: &Path) -> Result<Report> {
    let report = read_report(run)?.1;
    keep(&report, run)?;
    Ok(report)
}

/// Scores a run again; also returns its plan.
pub(super) fn read_report(run: &Path) -> Result<(Plan, Report)> {
    if is_published(run) {
        return Err(Error::Published { path: run.to_owned() });
    }
    let manifest = manifest(run)?;
    let (prepared, items) = scored(run, &manifest.plan)?;
    let report = Report::new(&manifest, &prepared, &items, &measured(run)?)?;
    Ok((manifest.plan, report))
}

/// The results of a run, scored by the scorers as they are now.
pub(super) fn scored(run: &Path, plan: &Plan) -> Result<(Vec<Prepared>, Vec<Item>)> {
    let (prepared, mut items) = items(run)?;
    let (suite, scorers) = (plan.suite()?, plan.scorers()?);
    items.iter_mut().for_each(|item| item.score(suite, &scorers));
    Ok((prepared, items))
}

/// Whether a run lacks the texts of its data, without which it cannot be scored.
pub(super) fn is_published(run: &Path) -> bool {
    run.join(LEFT_OUT).exists()
}

/// Writes a report to a folder, with its plots.
pub(super) fn keep(report: &Report, folder: &Path) -> Result<()> {
    put_json(&folder.join("report.json"), report)?;
    put(&folder.join("report.md"), &report.to_string())?;
    draw(report, &folder.join("plots"))
}
