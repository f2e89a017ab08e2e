//! GET /v1/bench/runs: reports of benchmark runs in the configured folder.
//!
//! A run is a folder with `report.json`, or `summary.json` as earlier versions wrote it, at most three folders deep.
//! Its name is its relative path; only listed names can be read.
#![allow(unused_qualifications, reason = "utoipa writes out the type of query parameters")]

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::Params;
use crate::error::{Result, ServerError};

/// Maximum depth below the configured folder.
const MAX_DEPTH: usize = 3;

/// Maximum bytes of a report; larger files are ignored.
const MAX_BYTES: u64 = 16 << 20;

/// File names of reports, in order of preference.
const REPORTS: [&str; 2] = ["report.json", "summary.json"];

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// Selects a run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ReportQuery {
    /// Its name in the list.
    run: String,
}

/// List the benchmark runs.
#[utoipa::path(get, path = "/v1/bench/runs", tag = "Engine", responses((status = 200, body = Value)))]
async fn list(State(app): State<App>) -> Result<Json<Value>> {
    let names: Vec<String> = run_blocking(move || Ok(runs(&app).into_iter().map(|(name, _)| name).collect())).await?;
    Ok(Json(json!({ "runs": names })))
}

/// Show the report of a benchmark run.
#[utoipa::path(get, path = "/v1/bench/report", tag = "Engine", params(ReportQuery),
    responses((status = 200, body = Value), (status = 404)))]
async fn show(State(app): State<App>, Params(ReportQuery { run }): Params<ReportQuery>) -> Result<impl IntoResponse> {
    let report = run_blocking(move || {
        let found = runs(&app).into_iter().find(|(name, _)| *name == run);
        let (_, path) = found.ok_or_else(|| ServerError::NotFound(format!("run {run}")))?;
        Ok(fs::read_to_string(path)?)
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], report.await?))
}

/// Names and reports of all runs, by name.
fn runs(app: &App) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    if let Some(folder) = &app.config.bench_runs {
        collect_runs(folder, String::new(), 0, &mut found);
    }
    found.sort();
    found
}

fn collect_runs(folder: &FilePath, name: String, depth: usize, found: &mut Vec<(String, PathBuf)>) {
    let is_report = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    if let Some(report) = REPORTS.iter().map(|report| folder.join(report)).find(is_report) {
        found.push((if name.is_empty() { ".".to_owned() } else { name.clone() }, report));
    }
    if depth == MAX_DEPTH {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Symbolic links could lead out of the folder.
        if let (Ok(kind), Some(own)) = (entry.file_type(), entry.file_name().to_str())
            && kind.is_dir()
        {
            let path = if name.is_empty() { own.to_owned() } else { format!("{name}/{own}") };
            collect_runs(&entry.path(), path, depth + 1, found);
        }
    }
}
