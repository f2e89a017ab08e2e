//! /v1/vector_stores: the corpora of a holder, as OpenAI's clients make, fill and search them. The id of a store is the
//! name of its corpus.

mod attributes;
mod batches;
mod files;
mod search;

pub(super) use search::{MAX_RESULTS, found};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::{fs, io};

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Corpus, Listing, private};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::metadata::Metadata;
use super::paging::{Part, listed};
use super::params::refuse_if;
use crate::app::{App, fresh_id, since_1970};
use crate::blocking::run_blocking;
use crate::body::{Body, Params};
use crate::corpora::attached::{Entry, Progress, attach, entries_of};
use crate::corpora::remove_corpus;
use crate::error::{Result, ServerError};
use crate::tenant::{CurrentTenant, Tenant};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(retrieve, update, delete))
        .routes(routes!(search::search))
        .merge(files::routes())
        .merge(batches::routes())
}

/// A new vector store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewVectorStore {
    name: Option<String>,
    description: Option<String>,
    /// Files to add at once.
    file_ids: Option<Vec<String>>,
    metadata: Option<Metadata>,
    expires_after: Option<Value>,
}

/// Changes of a vector store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VectorStoreUpdate {
    name: Option<String>,
    metadata: Option<Metadata>,
    expires_after: Option<Value>,
}

/// What a corpus does not keep itself; beside it, and removed with it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct About {
    created: u64,
    description: Option<String>,
    metadata: BTreeMap<String, String>,
}

const ABOUT: &str = "vector_store.json";

impl About {
    /// That of a corpus with these files. One that was not made as a vector store is as old as its first file.
    fn of(corpus: &Corpus, entries: &[Entry]) -> Result<About> {
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{ABOUT} is damaged: {error}"));
        match fs::read(corpus.file(ABOUT)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let created = entries.first().map_or(0, |entry| entry.created);
                Ok(About { created, ..About::default() })
            }
            bytes => Ok(serde_json::from_slice(&bytes?).map_err(damaged)?),
        }
    }

    fn write(&self, corpus: &Corpus) -> Result<()> {
        Ok(private::replace(&corpus.file(ABOUT), json!(self).to_string())?)
    }
}

/// A vector store as clients read it.
fn shown(corpus: &str, tenant: &Tenant) -> Result<Value> {
    let open = tenant.open(corpus)?;
    let entries = entries_of(tenant, &open)?;
    let (about, counts) = (About::of(&open, &entries)?, counts(&entries));
    let status = if counts["in_progress"] == 0 { "completed" } else { "in_progress" };
    Ok(json!({ "id": corpus, "object": "vector_store", "created_at": about.created,
        "name": open.title(), "description": about.description,
        "usage_bytes": open.bytes()?, "file_counts": counts, "status": status,
        "expires_after": null, "expires_at": null, "last_active_at": about.created, "metadata": about.metadata }))
}

/// A vector store of the list; none if it was removed meanwhile. One of which texts are being removed cannot be opened,
/// and is as the list knows it.
fn listed_store(Listing { name, title, bytes, counts }: Listing, tenant: &Tenant) -> Option<Result<Value>> {
    // One that is damaged is left out.
    let files = counts.ok()?.documents;
    match shown(&name.to_string(), tenant) {
        Err(ServerError::Store(store::Error::UnknownCorpus { .. })) => None,
        Err(ServerError::Store(store::Error::CorpusBusy { .. })) => {
            let counts = json!({ "in_progress": 0, "completed": files, "cancelled": 0, "failed": 0, "total": files });
            Some(Ok(json!({ "id": name.to_string(), "object": "vector_store", "created_at": 0, "name": title,
                "description": null, "usage_bytes": bytes, "file_counts": counts, "status": "in_progress",
                "expires_after": null, "expires_at": null, "last_active_at": null, "metadata": {} })))
        }
        shown => Some(shown),
    }
}

/// How many files are how far.
fn counts(entries: &[Entry]) -> Value {
    let count = |is_meant: fn(&Progress) -> bool| entries.iter().filter(|entry| is_meant(&entry.progress)).count();
    json!({
        "in_progress": count(|progress| *progress == Progress::Running),
        "completed": count(|progress| matches!(progress, Progress::Done | Progress::DoneInPart(_))),
        "cancelled": count(|progress| *progress == Progress::Cancelled),
        "failed": count(|progress| matches!(progress, Progress::Failed(_))),
        "total": entries.len(),
    })
}

async fn show(tenant: &Arc<Tenant>, corpus: String) -> Result<Json<Value>> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || Ok(Json(shown(&corpus, &tenant)?))).await
}

/// Make a vector store: a corpus.
#[utoipa::path(post, path = "/v1/vector_stores", tag = "OpenAI", request_body = NewVectorStore,
    responses((status = 200, body = Value)))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(new): Body<NewVectorStore>,
) -> Result<Json<Value>> {
    refuse_if(new.expires_after.is_some(), "expires_after")?;
    let files = new.file_ids.unwrap_or_default();
    let chosen = files::chosen(&tenant, files.into_iter().map(|id| (id, Value::Null)).collect()).await?;
    let (models, owner) = (Arc::clone(&app), Arc::clone(&tenant));
    let about = About {
        created: since_1970().as_secs(),
        description: new.description,
        metadata: new.metadata.unwrap_or_default().0,
    };
    let name = run_blocking(move || {
        let writer = match new.name.filter(|name| !name.trim().is_empty()) {
            Some(title) => owner.corpora.create_titled(&title, |name| models.has_model(name))?,
            None => owner.corpora.create(&fresh_id("vs")?)?,
        };
        about.write(&writer)?;
        Ok(writer.name().to_string())
    })
    .await?;
    if !chosen.is_empty()
        && let Err(refused) = attach(&app, &tenant, name.clone(), chosen, None).await
    {
        // The client would make another one.
        if let Err(error) = remove_corpus(&tenant, name).await {
            tracing::warn!(%error, "cannot remove a vector store whose files were not added");
        }
        return Err(refused);
    }
    show(&tenant, name).await
}

/// List the vector stores: all corpora.
#[utoipa::path(get, path = "/v1/vector_stores", tag = "OpenAI", params(Part), responses((status = 200, body = Value)))]
async fn list(Extension(tenant): CurrentTenant, Params(part): Params<Part>) -> Result<Json<Value>> {
    let stores = run_blocking(move || {
        let listings = tenant.corpora.list()?.into_iter();
        listings.filter_map(|listing| listed_store(listing, &tenant)).collect::<Result<Vec<Value>>>()
    });
    let mut stores = stores.await?;
    stores.sort_by_key(|store| store["created_at"].as_u64());
    Ok(Json(listed(stores, &part, (20, 100))?))
}

/// Show a vector store.
#[utoipa::path(get, path = "/v1/vector_stores/{vector_store_id}", tag = "OpenAI",
    params(("vector_store_id" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn retrieve(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Json<Value>> {
    show(&tenant, id).await
}

/// Change the name or the metadata of a vector store; its id remains.
#[utoipa::path(post, path = "/v1/vector_stores/{vector_store_id}", tag = "OpenAI",
    params(("vector_store_id" = String, Path)), request_body = VectorStoreUpdate,
    responses((status = 200, body = Value), (status = 404)))]
async fn update(
    Extension(tenant): CurrentTenant,
    Path(id): Path<String>,
    Body(update): Body<VectorStoreUpdate>,
) -> Result<Json<Value>> {
    refuse_if(update.expires_after.is_some(), "expires_after")?;
    let (owner, corpus) = (Arc::clone(&tenant), id.clone());
    run_blocking(move || {
        if let Some(name) = update.name {
            owner.corpora.set_title(&corpus, &name)?;
        }
        if let Some(Metadata(metadata)) = update.metadata {
            let open = owner.open(&corpus)?;
            let about = About::of(&open, &entries_of(&owner, &open)?)?;
            About { metadata, ..about }.write(&open)?;
        }
        Ok(())
    })
    .await?;
    show(&tenant, id).await
}

/// Delete a vector store: the corpus with its documents. Its files are kept.
#[utoipa::path(delete, path = "/v1/vector_stores/{vector_store_id}", tag = "OpenAI",
    params(("vector_store_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404), (status = 409, description = "The corpus is in use")))]
async fn delete(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Json<Value>> {
    remove_corpus(&tenant, id.clone()).await?;
    Ok(Json(json!({ "id": id, "object": "vector_store.deleted", "deleted": true })))
}

/// Refuses an unknown store.
fn unknown(id: &str) -> ServerError {
    ServerError::NotFound(id.to_owned())
}
