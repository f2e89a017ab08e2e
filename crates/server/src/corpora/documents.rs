//! The documents of a corpus: list, text and deletion.
#![allow(unused_qualifications, reason = "utoipa writes out the type of query parameters")]

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Corpus, DocId, Document, Writer};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::shown::{document_json, documents_json};
use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::Params;
use crate::error::{Result, ServerError};
use crate::tenant::{CurrentTenant, Tenant};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, remove))
}

/// A part of the documents, in the order in which they were added.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentPart {
    /// At least 1; all documents by default.
    pub limit: Option<usize>,
    /// The id of the document before the part; it may be deleted.
    pub after: Option<i64>,
}

/// List the documents of a corpus, all or a part; `has_more` is true if others come after it.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/documents", tag = "Memory",
    params(("corpus" = String, Path), DocumentPart), responses((status = 200, body = Value), (status = 404)))]
async fn list(
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    Params(part): Params<DocumentPart>,
) -> Result<Json<Value>> {
    let (documents, has_more) = list_documents(&tenant, corpus, part).await?;
    Ok(Json(json!({ "documents": documents, "has_more": has_more })))
}

/// A part of the documents of a corpus, without their texts, and whether others come after it.
pub(crate) async fn list_documents(
    tenant: &Arc<Tenant>,
    corpus: String,
    part: DocumentPart,
) -> Result<(Vec<Value>, bool)> {
    if part.limit == Some(0) {
        return Err(ServerError::invalid("`limit` must be at least 1", "limit"));
    }
    reading(tenant, corpus, move |corpus| listed(corpus, &part)).await
}

fn listed(corpus: &Corpus, part: &DocumentPart) -> Result<(Vec<Value>, bool)> {
    let mut documents = corpus.documents()?;
    documents.retain(|document| part.after.is_none_or(|after| document.id.0 > after));
    let all = documents.len();
    documents.truncate(part.limit.unwrap_or(all));
    Ok((documents_json(corpus, &documents)?, documents.len() < all))
}

/// Show a document with its text, to which citations refer.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/documents/{document}", tag = "Memory",
    params(("corpus" = String, Path), ("document" = i64, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn show(
    Extension(tenant): CurrentTenant,
    Path((corpus, document)): Path<(String, String)>,
) -> Result<Json<Value>> {
    Ok(Json(read_document(&tenant, corpus, id(&document)?).await?))
}

/// A document with its text.
pub(crate) async fn read_document(tenant: &Arc<Tenant>, corpus: String, id: DocId) -> Result<Value> {
    reading(tenant, corpus, move |corpus| Ok(document_json(corpus, id)?)).await
}

/// Id and path of every document of a corpus.
pub(crate) async fn document_paths(tenant: &Arc<Tenant>, corpus: String) -> Result<Vec<(DocId, String)>> {
    let line = |document: Document| (document.id, document.path);
    reading(tenant, corpus, move |corpus| Ok(corpus.documents()?.into_iter().map(line).collect())).await
}

/// Delete a document and everything derived from it, including the turns of threads that could quote it.
#[utoipa::path(delete, path = "/v1/corpora/{corpus}/documents/{document}", tag = "Memory",
    params(("corpus" = String, Path), ("document" = i64, Path)), responses((status = 204), (status = 404), (status = 409, description = "The corpus is in use")))]
async fn remove(
    Extension(tenant): CurrentTenant,
    Path((corpus, document)): Path<(String, String)>,
) -> Result<StatusCode> {
    remove_document(&tenant, corpus, id(&document)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a document with all that was derived from it.
pub(crate) async fn remove_document(tenant: &Arc<Tenant>, corpus: String, id: DocId) -> Result<()> {
    let tenant = Arc::clone(tenant);
    let lock = tenant.try_lock_corpus(&corpus)?;
    run_blocking(move || {
        let _lock = lock;
        let mut writer = tenant.corpora.open_writer(&corpus)?;
        let remove = |writer: &mut Writer| -> Result<()> { Ok(writer.remove_document(id)?) };
        tenant.forget.change(&mut writer, |document| document.id == id, remove).map_err(in_use_here)
    })
    .await
}

/// Names the request instead of the process that has a corpus open, if the process is this server.
pub(super) fn in_use_here(error: ServerError) -> ServerError {
    match error {
        ServerError::Store(store::Error::CorpusBusy { name, holder: Some(holder) })
            if holder.pid == std::process::id() && holder.machine.is_none() =>
        {
            ServerError::Conflict(format!(
                "corpus {name} is in use by another request of this server, such as a question; try again when it has ended"
            ))
        }
        error => error,
    }
}

/// Runs a read-only task on a corpus.
pub(super) async fn reading<T: Send + 'static>(
    tenant: &Arc<Tenant>,
    corpus: String,
    read: impl FnOnce(&Corpus) -> Result<T> + Send + 'static,
) -> Result<T> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || read(&tenant.open(&corpus)?)).await
}

fn id(text: &str) -> Result<DocId> {
    text.parse().map(DocId).map_err(|_| ServerError::NotFound(format!("document {text}")))
}
