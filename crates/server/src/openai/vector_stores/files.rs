//! The files of a vector store: documents of its corpus.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::files;
use super::super::paging::{Part, listed};
use super::attributes::checked;
use super::unknown;
use crate::app::App;
use crate::body::{Body, Params};
use crate::corpora::attached::{self, Entry, NewFile, Progress, attach, detach, entries};
use crate::corpora::jobs::UNSUPPORTED;
use crate::error::{Result, ServerError};
use crate::tenant::{CurrentTenant, Tenant};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(retrieve, update, delete))
        .routes(routes!(content))
}

/// A file to add. Files are cut as all documents are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewVectorStoreFile {
    file_id: String,
    attributes: Option<Value>,
}

/// New attributes of a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VectorStoreFileUpdate {
    attributes: Value,
}

/// Files by their ids, with their attributes; one that is named twice is refused.
pub(super) async fn chosen(tenant: &Arc<Tenant>, ids: Vec<(String, Value)>) -> Result<Vec<NewFile>> {
    let ids: Vec<(String, Value)> =
        ids.into_iter().map(|(id, attributes)| Ok((id, checked(attributes)?))).collect::<Result<_>>()?;
    let again = {
        let mut known = HashSet::new();
        ids.iter().find(|(id, _)| !known.insert(id.as_str())).map(|(id, _)| id.clone())
    };
    if let Some(id) = again {
        return Err(ServerError::invalid(format!("{id} is named twice"), "file_id"));
    }
    files::with(tenant, move |files| {
        let find = |(id, attributes): (String, Value)| {
            let (file, path) = files.find(&id)?;
            Ok(NewFile { id, name: file.name, path, bytes: file.bytes, attributes })
        };
        ids.into_iter().map(find).collect()
    })
    .await
}

pub(super) fn to_json(entry: &Entry, store: &str) -> Value {
    let error_of = |reason: &str| {
        let code = if reason == UNSUPPORTED { "unsupported_file" } else { "invalid_file" };
        Some(json!({ "code": code, "message": reason }))
    };
    let (status, error) = match &entry.progress {
        Progress::Running => ("in_progress", None),
        Progress::Done => ("completed", None),
        Progress::DoneInPart(reason) => ("completed", error_of(reason)),
        Progress::Cancelled => ("cancelled", None),
        Progress::Failed(reason) => ("failed", error_of(reason)),
    };
    json!({ "id": entry.id, "object": "vector_store.file", "created_at": entry.created, "vector_store_id": store,
        "usage_bytes": entry.bytes, "status": status, "last_error": error, "attributes": entry.attributes,
        "chunking_strategy": { "type": "other" } })
}

async fn shown(tenant: &Arc<Tenant>, store: String, id: &str) -> Result<Json<Value>> {
    let all = entries(tenant, store.clone()).await?;
    let entry = all.iter().find(|entry| entry.id == id).ok_or_else(|| unknown(&format!("file {id}")))?;
    Ok(Json(to_json(entry, &store)))
}

/// The part of a list of files that a query asks for.
pub(super) fn part_of(all: &[Entry], store: &str, part: &Part) -> Result<Value> {
    let mut files: Vec<Value> = all.iter().map(|entry| to_json(entry, store)).collect();
    files.retain(|file| part.filter.as_ref().is_none_or(|status| file["status"] == status.as_str()));
    listed(files, part, (20, 100))
}

/// Add a file to a vector store: a job makes it a document of the corpus.
#[utoipa::path(post, path = "/v1/vector_stores/{vector_store_id}/files", tag = "OpenAI",
    params(("vector_store_id" = String, Path)), request_body = NewVectorStoreFile,
    responses((status = 200, body = Value), (status = 404)))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(store): Path<String>,
    Body(new): Body<NewVectorStoreFile>,
) -> Result<Json<Value>> {
    let files = chosen(&tenant, vec![(new.file_id.clone(), new.attributes.unwrap_or_default())]).await?;
    attach(&app, &tenant, store.clone(), files, None).await?;
    shown(&tenant, store, &new.file_id).await
}

/// List the files of a vector store: all documents of the corpus.
#[utoipa::path(get, path = "/v1/vector_stores/{vector_store_id}/files", tag = "OpenAI",
    params(("vector_store_id" = String, Path), Part), responses((status = 200, body = Value), (status = 404)))]
async fn list(
    Extension(tenant): CurrentTenant,
    Path(store): Path<String>,
    Params(part): Params<Part>,
) -> Result<Json<Value>> {
    Ok(Json(part_of(&entries(&tenant, store.clone()).await?, &store, &part)?))
}

/// Show a file of a vector store.
#[utoipa::path(get, path = "/v1/vector_stores/{vector_store_id}/files/{file_id}", tag = "OpenAI",
    params(("vector_store_id" = String, Path), ("file_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn retrieve(Extension(tenant): CurrentTenant, Path((store, id)): Path<(String, String)>) -> Result<Json<Value>> {
    shown(&tenant, store, &id).await
}

/// Change the attributes of a file.
#[utoipa::path(post, path = "/v1/vector_stores/{vector_store_id}/files/{file_id}", tag = "OpenAI",
    params(("vector_store_id" = String, Path), ("file_id" = String, Path)), request_body = VectorStoreFileUpdate,
    responses((status = 200, body = Value), (status = 404)))]
async fn update(
    Extension(tenant): CurrentTenant,
    Path((store, id)): Path<(String, String)>,
    Body(update): Body<VectorStoreFileUpdate>,
) -> Result<Json<Value>> {
    let attributes = checked(update.attributes)?;
    attached::set_attributes(&tenant, store.clone(), id.clone(), attributes).await?;
    shown(&tenant, store, &id).await
}

/// The text of a file, as the corpus has it: one part, or one for each of its documents.
#[utoipa::path(get, path = "/v1/vector_stores/{vector_store_id}/files/{file_id}/content", tag = "OpenAI",
    params(("vector_store_id" = String, Path), ("file_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn content(Extension(tenant): CurrentTenant, Path((store, id)): Path<(String, String)>) -> Result<Json<Value>> {
    let texts = attached::texts(&tenant, store, id).await?;
    let data: Vec<Value> = texts.into_iter().map(|text| json!({ "type": "text", "text": text })).collect();
    Ok(Json(json!({ "object": "vector_store.file_content.page", "data": data, "has_more": false,
        "next_page": null })))
}

/// Remove a file from a vector store: the document with all that was made from it. The file itself is kept.
#[utoipa::path(delete, path = "/v1/vector_stores/{vector_store_id}/files/{file_id}", tag = "OpenAI",
    params(("vector_store_id" = String, Path), ("file_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404), (status = 409, description = "The corpus is in use")))]
async fn delete(Extension(tenant): CurrentTenant, Path((store, id)): Path<(String, String)>) -> Result<Json<Value>> {
    detach(&tenant, store, id.clone()).await?;
    Ok(Json(json!({ "id": id, "object": "vector_store.file.deleted", "deleted": true })))
}

#[cfg(test)]
mod tests {
    use super::super::counts;
    use super::*;

    #[test]
    fn a_file_that_was_added_in_part_is_complete_with_an_error() {
        let progress = Progress::DoneInPart("only its first document was read: it is cut".to_owned());
        let (id, attributes) = ("file-1".to_owned(), json!({}));
        let entry = Entry { id, created: 1, bytes: 2, batch: None, attributes, progress };
        let shown = to_json(&entry, "pell");
        assert_eq!((&shown["status"], &shown["last_error"]["code"]), (&json!("completed"), &json!("invalid_file")));
        assert_eq!(shown["last_error"]["message"], "only its first document was read: it is cut");
        let counts = counts(&[entry]);
        assert_eq!((&counts["completed"], &counts["failed"], &counts["total"]), (&json!(1), &json!(0), &json!(1)));
    }
}
