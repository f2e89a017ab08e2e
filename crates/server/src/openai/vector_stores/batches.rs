//! Files that are added to a vector store together, by one job.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::paging::Part;
use super::files::{chosen, part_of};
use super::{counts, unknown};
use crate::app::{App, fresh_id};
use crate::body::{Body, Params};
use crate::corpora::attached::{self, Entry, attach, entries};
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;
use crate::warnings::Warnings;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(retrieve))
        .routes(routes!(cancel))
        .routes(routes!(files))
}

/// Files to add: `file_ids` with the same attributes, or `files` with their own.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewFileBatch {
    file_ids: Option<Vec<String>>,
    files: Option<Vec<FileOfBatch>>,
    attributes: Option<Value>,
}

/// Other fields are ignored with a warning.
#[derive(Debug, Deserialize, ToSchema)]
struct FileOfBatch {
    file_id: String,
    attributes: Option<Value>,
    #[serde(flatten)]
    #[schema(ignore)]
    unknown: Map<String, Value>,
}

/// Maximum files of a batch.
const MAX_FILES: usize = 500;

fn to_json(id: &str, store: &str, of_batch: &[Entry]) -> Value {
    let counts = counts(of_batch);
    let is = |name: &str| counts[name] != 0;
    let status = if is("in_progress") {
        "in_progress"
    } else if is("cancelled") {
        "cancelled"
    } else if is("completed") {
        "completed"
    } else {
        "failed"
    };
    let created = of_batch.first().map_or(0, |entry| entry.created);
    json!({ "id": id, "object": "vector_store.files_batch", "created_at": created, "vector_store_id": store,
        "status": status, "file_counts": counts })
}

async fn of_batch(tenant: &std::sync::Arc<crate::tenant::Tenant>, store: &str, id: &str) -> Result<Vec<Entry>> {
    let mut all = entries(tenant, store.to_owned()).await?;
    all.retain(|entry| entry.batch.as_deref() == Some(id));
    if all.is_empty() { Err(unknown(&format!("file batch {id}"))) } else { Ok(all) }
}

/// Add files to a vector store.
#[utoipa::path(post, path = "/v1/vector_stores/{vector_store_id}/file_batches", tag = "OpenAI",
    params(("vector_store_id" = String, Path)), request_body = NewFileBatch,
    responses((status = 200, body = Value), (status = 404)))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    Path(store): Path<String>,
    Body(new): Body<NewFileBatch>,
) -> Result<Json<Value>> {
    for (number, file) in new.files.iter().flatten().enumerate() {
        warnings.ignore(&file.unknown, &format!("files[{number}]."))?;
    }
    let attributes = new.attributes.unwrap_or_default();
    let ids = match (new.file_ids, new.files) {
        (Some(ids), None) => ids.into_iter().map(|id| (id, attributes.clone())).collect(),
        (None, Some(files)) => {
            files.into_iter().map(|file| (file.file_id, file.attributes.unwrap_or_default())).collect()
        }
        _ => Vec::new(),
    };
    if ids.is_empty() || ids.len() > MAX_FILES {
        let message = format!("a batch has 1 to {MAX_FILES} files, in `file_ids` or in `files`");
        return Err(ServerError::invalid(message, "file_ids"));
    }
    let (files, id) = (chosen(&tenant, ids).await?, fresh_id("vsfb")?);
    attach(&app, &tenant, store.clone(), files, Some(id.clone())).await?;
    Ok(Json(to_json(&id, &store, &of_batch(&tenant, &store, &id).await?)))
}

/// Show a batch of files.
#[utoipa::path(get, path = "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}", tag = "OpenAI",
    params(("vector_store_id" = String, Path), ("batch_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn retrieve(Extension(tenant): CurrentTenant, Path((store, id)): Path<(String, String)>) -> Result<Json<Value>> {
    Ok(Json(to_json(&id, &store, &of_batch(&tenant, &store, &id).await?)))
}

/// Cancel the ingest of a batch; documents that are finished stay.
#[utoipa::path(post, path = "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel", tag = "OpenAI",
    params(("vector_store_id" = String, Path), ("batch_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn cancel(Extension(tenant): CurrentTenant, Path((store, id)): Path<(String, String)>) -> Result<Json<Value>> {
    of_batch(&tenant, &store, &id).await?;
    attached::cancel(&tenant, store.clone(), id.clone()).await?;
    Ok(Json(to_json(&id, &store, &of_batch(&tenant, &store, &id).await?)))
}

/// List the files of a batch.
#[utoipa::path(get, path = "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files", tag = "OpenAI",
    params(("vector_store_id" = String, Path), ("batch_id" = String, Path), Part),
    responses((status = 200, body = Value), (status = 404)))]
async fn files(
    Extension(tenant): CurrentTenant,
    Path((store, id)): Path<(String, String)>,
    Params(part): Params<Part>,
) -> Result<Json<Value>> {
    Ok(Json(part_of(&of_batch(&tenant, &store, &id).await?, &store, &part)?))
}
