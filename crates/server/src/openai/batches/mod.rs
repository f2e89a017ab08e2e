//! /v1/batches: the requests of a file, answered in the background with the lowest priority; a batch goes on after the
//! server was restarted.

mod lines;
mod run;

pub(crate) use run::resume;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{self, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::paging::{Part, listed};
use super::params::refuse_if;
use super::records::{Record, Records};
use crate::app::{App, fresh_id, since_1970};
use crate::blocking::run_blocking;
use crate::body::{Body, Params};
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(retrieve)).routes(routes!(cancel))
}

/// What a batch may ask.
const ENDPOINTS: [&str; 4] = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"];

/// Maximum batches that are listed; of more the oldest that have ended are forgotten.
const MAX_BATCHES: usize = 1000;

const DAY_SECONDS: u64 = 24 * 3600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Validating,
    InProgress,
    Finalizing,
    Completed,
    Failed,
    Cancelling,
    Cancelled,
}

impl Status {
    fn is_end(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// Requests by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    total: usize,
    completed: usize,
    failed: usize,
}

/// A batch of a holder. Its replies are beside it until it has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Batch {
    id: String,
    created: u64,
    endpoint: String,
    input: String,
    window: String,
    metadata: BTreeMap<String, String>,
    status: Status,
    /// When it came to each status, in seconds since 1970.
    times: BTreeMap<String, u64>,
    counts: Counts,
    output: Option<String>,
    errors: Option<String>,
    /// Why it failed.
    failure: Option<String>,
}

impl Record for Batch {
    const PREFIX: &'static str = "batch";
    const NOUN: &'static str = "batch";

    fn id(&self) -> &str {
        &self.id
    }
}

/// The batches of one holder.
pub(crate) struct Batches {
    records: Records<Batch>,
    /// One batch is answered at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Batches {
    /// Those below the folder of a holder.
    pub fn new(folder: &Path) -> Batches {
        Batches { records: Records::new(folder.join("batches")), turn: tokio::sync::Mutex::default() }
    }

    fn change<T>(&self, id: &str, work: impl FnOnce(&mut Batch) -> T) -> Result<T> {
        let _one = self.records.lock();
        let mut batch = self.records.read(id)?;
        let outcome = work(&mut batch);
        self.records.write(&batch)?;
        Ok(outcome)
    }

    /// Forgets the oldest batches that have ended, if there are too many.
    fn trim(&self) -> Result<()> {
        let mut all = self.records.all()?;
        let more = all.len().saturating_sub(MAX_BATCHES - 1);
        all.retain(|batch| batch.status.is_end());
        all.sort_by_key(|batch| batch.created);
        all.iter().take(more).try_for_each(|batch| self.records.remove(&batch.id))
    }
}

impl Batch {
    fn set(&mut self, status: Status) {
        self.status = status;
        let name = json!(status).as_str().unwrap_or_default().to_owned();
        self.times.insert(name, since_1970().as_secs());
    }

    fn to_json(&self) -> Value {
        let error = |message| json!({ "code": "invalid_file", "message": message, "line": null, "param": null });
        let errors = self.failure.as_ref().map(|message| json!({ "object": "list", "data": [error(message)] }));
        let mut shown = json!({
            "id": self.id, "object": "batch", "endpoint": self.endpoint, "errors": errors,
            "input_file_id": self.input, "completion_window": self.window, "status": self.status,
            "output_file_id": self.output, "error_file_id": self.errors, "created_at": self.created,
            "expires_at": self.created + DAY_SECONDS, "expired_at": null, "request_counts": self.counts,
            "metadata": self.metadata,
        });
        for name in ["in_progress", "finalizing", "completed", "failed", "cancelling", "cancelled"] {
            shown[format!("{name}_at")] = json!(self.times.get(name));
        }
        shown
    }
}

/// Runs a task on the batches of a tenant.
async fn with<T: Send + 'static>(
    tenant: &Arc<Tenant>,
    work: impl FnOnce(&Batches) -> Result<T> + Send + 'static,
) -> Result<T> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.batches)).await
}

/// A new batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewBatch {
    /// A file with the purpose `batch`: a request in each line.
    input_file_id: String,
    endpoint: String,
    /// A batch takes as long as it takes.
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
        let _one = owner.batches.records.lock();
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
            batch.set(Status::Cancelling);
            Ok(batch.clone())
        })?
    });
    Ok(Json(batch.await?.to_json()))
}

/// Moves a finished file of replies to the files of its holder; an empty one is deleted.
fn keep(tenant: &Tenant, id: &str, extension: &str) -> Result<Option<String>> {
    let place = tenant.batches.records.path(id, extension)?;
    match fs::metadata(&place) {
        Ok(about) if about.len() > 0 => {
            let name = format!("{id}_{}.jsonl", if extension == lines::REPLIES { "output" } else { "error" });
            Ok(Some(tenant.files.keep_written(name, place)?.id))
        }
        Ok(_) => {
            fs::remove_file(place)?;
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}
