//! The routes of jobs.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::run::spawn;
use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::Result;
use crate::stream::{Framing, respond};
use crate::tenant::CurrentTenant;

pub(in crate::corpora) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, cancel))
        .routes(routes!(events))
        .routes(routes!(resume))
}

/// List jobs, the latest last.
#[utoipa::path(get, path = "/v1/jobs", tag = "Memory", responses((status = 200, body = Value)))]
async fn list(Extension(tenant): CurrentTenant) -> Json<Value> {
    let jobs: Vec<Value> = tenant.jobs.all().iter().map(|job| job.to_json()).collect();
    Json(json!({ "jobs": jobs }))
}

/// Show a job.
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn show(Extension(tenant): CurrentTenant, Path(job): Path<String>) -> Result<Json<Value>> {
    Ok(Json(tenant.jobs.get(&job)?.to_json()))
}

/// Follow a job: an event `job` on each progress, until it has ended.
#[utoipa::path(get, path = "/v1/jobs/{job}/events", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404)))]
async fn events(Extension(tenant): CurrentTenant, Path(job): Path<String>) -> Result<Response> {
    let job = tenant.jobs.get(&job)?;
    respond(Framing::Events, |sink| async move {
        let mut states = job.state.subscribe();
        loop {
            sink.wait_for_capacity().await;
            let state = states.borrow_and_update().clone();
            sink.event("job", &job.to_json_with(&state));
            if state.status.is_end() || states.changed().await.is_err() {
                return Ok(());
            }
        }
    })
    .await
}

/// Cancel a job and keep its finished work; a job that has ended is deleted with its files.
#[utoipa::path(delete, path = "/v1/jobs/{job}", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn cancel(Extension(tenant): CurrentTenant, Path(job): Path<String>) -> Result<Json<Value>> {
    let job = tenant.jobs.get(&job)?;
    let (jobs, ended) = (Arc::clone(&tenant), Arc::clone(&job));
    if run_blocking(move || Ok(jobs.jobs.delete(&ended))).await?.is_none() {
        job.cancelled.send_replace(true);
        job.ended().await;
    }
    Ok(Json(job.to_json()))
}

/// Resume a cancelled or failed job.
#[utoipa::path(post, path = "/v1/jobs/{job}/resume", tag = "Memory", params(("job" = String, Path)),
    responses((status = 202, body = Value), (status = 404), (status = 409, description = "The job is running or done")))]
async fn resume(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(job): Path<String>,
) -> Result<(StatusCode, Json<Value>)> {
    let job = tenant.jobs.get(&job)?;
    spawn(&app, &tenant, &job)?;
    Ok((StatusCode::ACCEPTED, Json(job.to_json())))
}
