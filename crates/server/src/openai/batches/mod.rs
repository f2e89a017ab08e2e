//! /v1/batches: the requests of a file, answered in the background with the lowest priority; a batch resumes after the
//! server was restarted.

pub(crate) mod forgetting;
pub(crate) mod kept;
mod lines;
mod run;

pub(crate) use run::resume;

use std::collections::BTreeMap;

use axum::extract::{self, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::metadata::Metadata;
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
    metadata: Option<Metadata>,
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
        id,
        created,
        endpoint: new.endpoint,
        input: new.input_file_id.clone(),
        window: new.completion_window.unwrap_or_else(|| "24h".to_owned()),
        metadata: new.metadata.unwrap_or_default().0,
        status: Status::Validating,
        times: BTreeMap::new(),
        counts: Counts::default(),
        output: None,
        errors: None,
        failure: None,
    };
    batch.set(Status::Validating);
    let shown = batch.to_json();
    run_blocking(move || {
        let input = tenant.files.read(&new.input_file_id);
        if !input.is_ok_and(|file| file.purpose == "batch") {
            let message = format!("{} is not a file with the purpose `batch`", new.input_file_id);
            return Err(ServerError::invalid(message, "input_file_id"));
        }
        {
            let _one = tenant.batches.records.lock()?;
            tenant.batches.trim()?;
            tenant.batches.records.write(&batch)?;
        }
        // In one step: a client that disconnects does not leave a batch that never starts.
        run::start(&app, &tenant, batch.id);
        Ok(())
    })
    .await?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::poll;
    use serde_json::json;
    use tokio::runtime::Builder;

    use super::*;
    use crate::app::Shared;

    #[test]
    fn a_batch_whose_client_disconnects_is_run() {
        let (app, data) = Shared::scripted();
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            let tenant = app.tenants.anonymous();
            let content = data.path().join("content");
            std::fs::write(&content, "{}").expect("it can be written");
            let input = tenant.files.keep("a.jsonl".to_owned(), "batch", content).expect("it is kept").id;
            let new = json!({ "input_file_id": input, "endpoint": "/v1/embeddings" });
            let new: NewBatch = serde_json::from_value(new).expect("a batch");
            // The only thread for blocking work waits, so the batch is kept after the client has disconnected.
            let (disconnect, disconnected) = mpsc::channel::<()>();
            let waiting = tokio::task::spawn_blocking(move || disconnected.recv().is_err());
            let mut created = Box::pin(create(State(Arc::clone(&app)), Extension(Arc::clone(&tenant)), Body(new)));
            assert!(poll!(created.as_mut()).is_pending());
            drop((created, disconnect));
            assert!(waiting.await.expect("it ends"));
            let ended = async {
                while !with(&tenant, |batches| batches.records.all()).await?.iter().any(|batch| batch.status.is_end()) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Ok::<(), ServerError>(())
            };
            tokio::time::timeout(Duration::from_mins(1), ended).await.expect("it ends").expect("it can be read");
        });
    }
}
