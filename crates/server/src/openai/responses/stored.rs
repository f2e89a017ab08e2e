//! Responses that are kept: one private file each in the folder of their owner, until they are deleted, a document that
//! they may quote is deleted, or they are too old or too many. `serve --no-threads` keeps none.

use std::sync::Arc;

use axum::extract;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::paging::{Part, listed};
use super::super::params::refuse_if;
use super::super::quoted::states_of;
use super::conversations::complete;
use super::items::Input;
use super::kept::{Record, Responses};
use crate::blocking::run_blocking;
use crate::body::Params;
use crate::error::Result;
use crate::fresh::since_1970;
use crate::lost::CorpusState;
use crate::tenant::{CurrentTenant, Tenant};

/// Runs a task on the responses of a tenant.
async fn with<T: Send + 'static>(
    tenant: &Arc<Tenant>,
    work: impl FnOnce(&Responses) -> Result<T> + Send + 'static,
) -> Result<T> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.responses)).await
}

/// Keeps a response, unless it, or a text that it may quote, was deleted since its corpora had these states.
pub(super) async fn put(tenant: &Arc<Tenant>, record: Record, states: Vec<CorpusState>) -> Result<()> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || put_now(&tenant, record, &states)).await
}

/// The same on a thread for blocking work.
pub(super) fn put_now(tenant: &Tenant, record: Record, states: &[CorpusState]) -> Result<()> {
    let record = Record { answered: Some(since_1970().as_secs()), ..record };
    let responses = &tenant.responses;
    let _one = responses.records.lock()?;
    let was_stopped = record.ends_background() && !responses.active().contains_key(&record.id);
    if was_stopped || states_of(tenant, &record.corpora)? != states {
        return Ok(());
    }
    responses.write(&record)
}

/// The items before a request that continues a response, and the corpora that they may quote.
pub(super) async fn chain(tenant: &Arc<Tenant>, id: String) -> Result<(Vec<Value>, Vec<String>)> {
    with(tenant, move |responses| responses.chain(&id)).await
}

/// Replaces references in an input with the items that they name, and returns the corpora that those may quote.
///
/// # Errors
/// [`ServerError::NotFound`](crate::error::ServerError::NotFound) if no kept response has one of them.
pub(super) async fn resolve(tenant: &Arc<Tenant>, input: &mut Input) -> Result<Vec<String>> {
    let ids = input.references();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (found, corpora) = with(tenant, move |responses| responses.items(&ids)).await?;
    input.resolve(&found)?;
    Ok(corpora)
}

/// How a response is to be shown.
#[derive(Debug, Deserialize)]
pub(super) struct Shown {
    stream: Option<bool>,
}

/// Show a stored response.
#[utoipa::path(get, path = "/v1/responses/{response_id}", tag = "OpenAI", params(("response_id" = String, Path),
        ("stream" = Option<bool>, Query, description = "True is refused: the events of a response are not kept")),
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn retrieve(
    Extension(tenant): CurrentTenant,
    extract::Path(id): extract::Path<String>,
    Params(how): Params<Shown>,
) -> Result<Json<Value>> {
    refuse_if(how.stream.unwrap_or(false), "stream")?;
    Ok(Json(with(&tenant, move |responses| responses.shown(&id)).await?))
}

/// Delete a stored response.
#[utoipa::path(delete, path = "/v1/responses/{response_id}", tag = "OpenAI", params(("response_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn delete(
    Extension(tenant): CurrentTenant,
    extract::Path(id): extract::Path<String>,
) -> Result<Json<Value>> {
    let deleted = json!({ "id": id, "object": "response", "deleted": true });
    with(&tenant, move |responses| {
        let _one = responses.records.lock()?;
        responses.remove(&id)
    })
    .await?;
    Ok(Json(deleted))
}

/// Stop a response in the background.
#[utoipa::path(post, path = "/v1/responses/{response_id}/cancel", tag = "OpenAI",
    params(("response_id" = String, Path)), responses((status = 200, body = Value), (status = 404),
        (status = 400, description = "The response was not made in the background")))]
pub(super) async fn cancel(
    Extension(tenant): CurrentTenant,
    extract::Path(id): extract::Path<String>,
) -> Result<Json<Value>> {
    Ok(Json(with(&tenant, move |responses| responses.cancel(&id)).await?))
}

/// List the input items of a stored response.
#[utoipa::path(get, path = "/v1/responses/{response_id}/input_items", tag = "OpenAI",
    params(("response_id" = String, Path), Part), responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn input_items(
    Extension(tenant): CurrentTenant,
    extract::Path(id): extract::Path<String>,
    Params(part): Params<Part>,
) -> Result<Json<Value>> {
    let mut items = with(&tenant, move |responses| Ok(responses.records.read(&id)?.input)).await?;
    items.iter_mut().for_each(complete);
    Ok(Json(listed(items, &part, (20, 100))?))
}
