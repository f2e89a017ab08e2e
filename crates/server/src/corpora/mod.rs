//! memlocal's own API: corpora, ingest, search, questions and traces.

mod answered;
mod ask;
pub(crate) mod attached;
pub(crate) mod attachment;
mod documents;
mod graph;
mod ingest;
pub(crate) mod jobs;
pub(crate) mod kept;
pub(crate) mod note;
mod notes;
mod questions;
mod ready;
mod search;
mod settings;
pub(crate) mod shown;
pub(crate) mod suggested;
pub(crate) mod thread;
mod threads;
pub(crate) mod trace_list;
mod traces;

pub(crate) use ask::{AskRequest, Watch, answer};
pub(crate) use documents::{DocumentPart, document_paths, list_documents, read_document, remove_document};
pub(crate) use ingest::{
    TextUpload, check_text, create_file, file_name, form_error, ingest_text, read_field, skip_field, start_preparation,
    too_large,
};
pub(crate) use jobs::{CancelOnDrop, Job, resume_interrupted};
pub(crate) use search::{SearchRequest, search_pages};

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use memory::methods as registry;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::shown::corpus_json;
use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::config::Config;
use crate::error::{Result, ServerError};
use crate::tenant::{CurrentTenant, Tenant};

pub(crate) fn routes(config: &Config) -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, rename, remove))
        .routes(routes!(methods))
        .merge(documents::routes())
        .merge(ingest::routes(config))
        .merge(jobs::routes())
        .merge(threads::routes())
        .merge(notes::routes())
        .merge(questions::routes())
        .routes(routes!(graph::show))
        .routes(routes!(search::search))
        .routes(routes!(ask::ask))
        .routes(routes!(traces::show))
}

/// The name of a new corpus, or a title from which the server makes a name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewCorpus {
    /// 1 to 64 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit.
    name: Option<String>,
    /// 1 to 120 characters of any script.
    title: Option<String>,
}

/// A new title of a corpus; its name remains.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RenamedCorpus {
    /// 1 to 120 characters of any script.
    title: String,
}

/// List the corpora.
#[utoipa::path(get, path = "/v1/corpora", tag = "Memory", responses((status = 200, body = Value)))]
async fn list(Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    Ok(Json(json!({ "corpora": list_corpora(&tenant).await? })))
}

/// All corpora with their counts, or the error of opening one.
pub(crate) async fn list_corpora(tenant: &Arc<Tenant>) -> Result<Vec<Value>> {
    let tenant = Arc::clone(tenant);
    let listings = run_blocking(move || Ok(tenant.corpora.list()?)).await?;
    Ok(listings.into_iter().map(corpus_json).collect())
}

/// Show a corpus, as the list does.
#[utoipa::path(get, path = "/v1/corpora/{corpus}", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn show(Extension(tenant): CurrentTenant, Path(corpus): Path<String>) -> Result<Json<Value>> {
    run_blocking(move || {
        let listed = tenant.corpora.list()?.into_iter().find(|listing| listing.name.to_string() == corpus);
        if let Some(listing) = listed {
            return Ok(Json(corpus_json(listing)));
        }
        // The error of a name that is not in the list.
        drop(tenant.open(&corpus)?);
        Err(ServerError::NotFound(format!("corpus `{corpus}`")))
    })
    .await
}

/// Create an empty corpus.
#[utoipa::path(post, path = "/v1/corpora", tag = "Memory", request_body = NewCorpus,
    responses((status = 201, body = Value), (status = 409, description = "A corpus or model of this name exists")))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(new): Body<NewCorpus>,
) -> Result<(StatusCode, Json<Value>)> {
    let created = run_blocking(move || match (new.name, new.title) {
        (None, Some(title)) => {
            let name = tenant.corpora.create_titled(&title, |name| app.has_model(name))?.name().to_string();
            Ok(json!({ "name": name, "title": title.trim() }))
        }
        (Some(name), title) => {
            create_corpus(&app, &tenant, &name, title.as_deref())?;
            Ok(json!({ "name": name, "title": title.as_deref().unwrap_or(&name).trim() }))
        }
        (None, None) => Err(ServerError::invalid("a new corpus needs a `name` or a `title`", "name")),
    });
    Ok((StatusCode::CREATED, Json(created.await?)))
}

/// Creates an empty corpus. A request names a model and a corpus in the same field, so the name of a model is refused.
pub(crate) fn create_corpus(app: &App, tenant: &Tenant, name: &str, title: Option<&str>) -> Result<()> {
    if app.has_model(name) {
        return Err(ServerError::Conflict(format!("a model has the name `{name}`; give the corpus another")));
    }
    drop(match title {
        Some(title) => tenant.corpora.create_named(name, title)?,
        None => tenant.corpora.create(name)?,
    });
    Ok(())
}

/// Change the title of a corpus.
#[utoipa::path(patch, path = "/v1/corpora/{corpus}", tag = "Memory", params(("corpus" = String, Path)),
    request_body = RenamedCorpus, responses((status = 200, body = Value), (status = 404)))]
async fn rename(
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    Body(renamed): Body<RenamedCorpus>,
) -> Result<Json<Value>> {
    let renamed = run_blocking(move || {
        tenant.corpora.set_title(&corpus, &renamed.title)?;
        Ok(json!({ "name": corpus, "title": renamed.title.trim() }))
    });
    Ok(Json(renamed.await?))
}

/// Delete a corpus with its documents, jobs, files, threads, stored responses and traces.
#[utoipa::path(delete, path = "/v1/corpora/{corpus}", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 204), (status = 404), (status = 409, description = "The corpus is in use")))]
async fn remove(Extension(tenant): CurrentTenant, Path(corpus): Path<String>) -> Result<StatusCode> {
    remove_corpus(&tenant, corpus).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a corpus with all that is kept beside it or may quote it.
pub(crate) async fn remove_corpus(tenant: &Arc<Tenant>, corpus: String) -> Result<()> {
    let tenant = Arc::clone(tenant);
    let lock = tenant.try_lock_corpus(&corpus)?;
    run_blocking(move || {
        let _lock = lock;
        let removed = tenant.forget.remove_corpus(&tenant.corpora, &corpus);
        if matches!(removed, Ok(()) | Err(ServerError::Store(store::Error::UnknownCorpus { .. }))) {
            tenant.jobs.delete_of(&corpus);
        }
        removed.map_err(documents::in_use_here)
    })
    .await
}

/// List the methods that answer questions.
#[utoipa::path(get, path = "/v1/methods", tag = "Memory", responses((status = 200, body = Value)))]
async fn methods() -> Json<Value> {
    let about: Vec<Value> = registry::ALL
        .iter()
        .map(|method| json!({ "name": method.name(), "summary": method.about().summary() }))
        .collect();
    Json(json!({ "methods": registry::ALL, "about": about }))
}
