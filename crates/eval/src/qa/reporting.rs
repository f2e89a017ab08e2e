//! Scoring a run again, and writing its report with the plots.

use std::path::Path;

use super::folder::{LEFT_OUT, items, manifest, measured, write_json};
use super::plan::Plan;
use super::plot::draw;
use super::report::Report;
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
    if run.join(LEFT_OUT).exists() {
        return Err(Error::Published { path: run.to_owned() });
    }
    let manifest = manifest(run)?;
    let (prepared, mut items) = items(run)?;
    let scorers = manifest.plan.scorers()?;
    let suite = manifest.plan.suite()?;
    items.iter_mut().for_each(|item| item.score(suite, &scorers));
    let report = Report::new(&manifest, &prepared, &items, &measured(run)?)?;
    Ok((manifest.plan, report))
}

/// Writes a report to a folder, with its plots.
pub(super) fn keep(report: &Report, folder: &Path) -> Result<()> {
    write_json(&folder.join("report.json"), report)?;
    let path = folder.join("report.md");
    std::fs::write(&path, report.to_string()).map_err(Error::writing(&path))?;
    draw(report, &folder.join("plots"))
}
