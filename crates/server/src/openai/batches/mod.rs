//! /v1/batches: the requests of a file, answered in the background with the lowest priority; a batch resumes after the
//! server was restarted.

mod forgetting;
pub(crate) mod kept;
mod lines;
mod run;

pub(crate) use forgetting::forget;
pub(crate) use run::resume;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{self, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::paging::{Part, listed};
use super::params::refuse_if;
use crate::app::{App, fresh_id, since_1970};
use crate::blocking::run_blocking;
use crate::body::{Body, Params};
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;
use kept::{Batch, Counts, Status};
use run::with;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(retrieve)).routes(routes!(cancel))
}

/// What a batch may ask.
const ENDPOINTS: [&str; 4] = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"];

/// A new batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewBatch {
    /// A file with the purpose `batch`: a request in each line.
    input_file_id: String,
    endpoint: String,
    /// Shown only: a batch has no deadline.
    completion_window: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    output_expires_after: Option<Value>,
}

/// Begin a batch.
#[utoipa::path(post, path = "/v1/batches", tag = "OpenAI", request_body = NewBatch,
    responses((status = 200, body = Value)))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(new): Body<NewBatch>,
) -> Result<Json<Value>> {
    refuse_if(new.output_expires_after.is_some(), "output_expires_after")?;
    if !ENDPOINTS.contains(&new.endpoint.as_str()) {
        return Err(ServerError::invalid(format!("`endpoint` is one of {}", ENDPOINTS.join(", ")), "endpoint"));
    }
    let (id, created) = (fresh_id("batch")?, since_1970().as_secs());
    let mut batch = Batch {
        id: id.clone(),
        created,
        endpoint: new.endpoint,
        input: new.input_file_id.clone(),
        window: new.completion_window.unwrap_or_else(|| "24h".to_owned()),
        metadata: new.metadata.unwrap_or_default(),
        status: Status::Validating,
        times: BTreeMap::new(),
        counts: Counts::default(),
        output: None,
        errors: None,
        failure: None,
    };
    batch.set(Status::Validating);
    let shown = batch.to_json();
    let owner = Arc::clone(&tenant);
    run_blocking(move || {
        let input = owner.files.read(&new.input_file_id);
        if !input.is_ok_and(|file| file.purpose == "batch") {
            let message = format!("{} is not a file with the purpose `batch`", new.input_file_id);
            return Err(ServerError::invalid(message, "input_file_id"));
        }
        let _one = owner.batches.records.lock()?;
        owner.batches.trim()?;
        owner.batches.records.write(&batch)
    })
    .await?;
    run::start(&app, &tenant, id);
    Ok(Json(shown))
}

/// List the batches.
#[utoipa::path(get, path = "/v1/batches", tag = "OpenAI", params(Part), responses((status = 200, body = Value)))]
async fn list(Extension(tenant): CurrentTenant, Params(part): Params<Part>) -> Result<Json<Value>> {
    let mut all = with(&tenant, |batches| batches.records.all()).await?;
    all.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    Ok(Json(listed(all.iter().map(Batch::to_json).collect(), &part, (20, 100))?))
}

/// Show a batch.
#[utoipa::path(get, path = "/v1/batches/{batch_id}", tag = "OpenAI", params(("batch_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn retrieve(Extension(tenant): CurrentTenant, extract::Path(id): extract::Path<String>) -> Result<Json<Value>> {
    Ok(Json(with(&tenant, move |batches| batches.records.read(&id)).await?.to_json()))
}

/// Cancel a batch; the replies that are finished are kept.
#[utoipa::path(post, path = "/v1/batches/{batch_id}/cancel", tag = "OpenAI", params(("batch_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404), (status = 409, description = "It has ended")))]
async fn cancel(Extension(tenant): CurrentTenant, extract::Path(id): extract::Path<String>) -> Result<Json<Value>> {
    let batch = with(&tenant, move |batches| {
        batches.change(&id, |batch| {
            if batch.status.is_end() {
                return Err(ServerError::Conflict(format!("batch {} has ended", batch.id)));
            }
            // One that waits for its turn has no requests to finish.
            let has_begun = batch.status != Status::Validating;
            batch.set(if has_begun { Status::Cancelling } else { Status::Cancelled });
            Ok(batch.clone())
        })?
    });
    Ok(Json(batch.await?.to_json()))
}
