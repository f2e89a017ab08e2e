//! The routes of threads. `--no-threads` keeps none.
#![allow(unused_qualifications, reason = "utoipa writes out the type of query parameters")]

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use store::Corpus;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::kept;
use super::thread::{Thread, checked_title, now};
use crate::app::{App, fresh_id};
use crate::blocking::run_blocking;
use crate::body::{Body, Params};
use crate::error::{Result, ServerError};
use crate::tenant::{CurrentTenant, Tenant};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create, remove_all)).routes(routes!(show, rename, remove))
}

/// Maximum threads of one corpus.
const MAX_THREADS: usize = 1000;

/// The title of a thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewThread {
    /// The first question by default.
    title: Option<String>,
}

/// A new title.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Renamed {
    title: String,
}

/// How a thread is written.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ThreadQuery {
    /// `json` (by default) or `markdown`.
    format: Option<String>,
}

/// Runs a task on the threads of a corpus, which is not removed meanwhile.
async fn with_corpus<T: Send + 'static>(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    work: impl FnOnce(&Corpus) -> Result<T> + Send + 'static,
) -> Result<T> {
    if !app.config.keep_threads {
        return Err(ServerError::NoThreads);
    }
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.open(&corpus)?)).await
}

/// List the threads of a corpus, the latest first; `kept` is false where the server keeps none.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/threads", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn list(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
) -> Result<Json<Value>> {
    if !app.config.keep_threads {
        return Ok(Json(json!({ "kept": false, "threads": [] })));
    }
    let line = |Thread { id, title, created, updated, turns }| json!({ "id": id, "title": title, "created": created, "updated": updated, "turns": turns.len() });
    let threads = with_corpus(&app, &tenant, corpus, move |corpus| kept::map_all(corpus, line));
    Ok(Json(json!({ "kept": true, "threads": threads.await? })))
}

/// Begin a thread. `POST /v1/corpora/{corpus}/ask` with its id appends to it.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/threads", tag = "Memory", params(("corpus" = String, Path)),
    request_body = NewThread, responses((status = 201, body = Thread), (status = 404),
        (status = 409, description = "The server keeps no threads")))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    Body(new): Body<NewThread>,
) -> Result<(StatusCode, Json<Value>)> {
    let title = new.title.as_deref().map(checked_title).transpose()?.unwrap_or_default();
    let thread = Thread { id: fresh_id("thread")?, title, created: now(), updated: now(), turns: Vec::new() };
    let created = with_corpus(&app, &tenant, corpus, move |corpus| {
        let _one = kept::lock(corpus)?;
        let known = kept::map_all(corpus, |_: Thread| ())?.len();
        if known >= MAX_THREADS {
            let message = format!("the corpus has {known} threads; at most {MAX_THREADS} are kept: delete some");
            return Err(ServerError::refused(message));
        }
        kept::write(corpus, &thread)?;
        Ok(thread)
    });
    Ok((StatusCode::CREATED, Json(json!(created.await?))))
}

/// Delete all threads of a corpus.
#[utoipa::path(delete, path = "/v1/corpora/{corpus}/threads", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 204), (status = 404), (status = 409, description = "The server keeps no threads")))]
async fn remove_all(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
) -> Result<StatusCode> {
    with_corpus(&app, &tenant, corpus, |corpus| {
        let _one = kept::lock(corpus)?;
        kept::delete_all::<Thread>(corpus)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show a thread, or export it as Markdown.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/threads/{thread}", tag = "Memory",
    params(("corpus" = String, Path), ("thread" = String, Path), ThreadQuery),
    responses((status = 200, content((Thread = "application/json"), (String = "text/markdown"))), (status = 404)))]
async fn show(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((corpus, id)): Path<(String, String)>,
    Params(query): Params<ThreadQuery>,
) -> Result<Response> {
    let as_markdown = match query.format.as_deref() {
        None | Some("json") => false,
        Some("markdown") => true,
        Some(other) => return Err(ServerError::invalid(format!("`{other}` is not one of json, markdown"), "format")),
    };
    let thread = with_corpus(&app, &tenant, corpus, move |corpus| Ok(kept::read::<Thread>(corpus, &id)?.0));
    let thread = thread.await?;
    if as_markdown {
        return Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], markdown(&thread)).into_response());
    }
    Ok(Json(thread).into_response())
}

/// Rename a thread.
#[utoipa::path(patch, path = "/v1/corpora/{corpus}/threads/{thread}", tag = "Memory",
    params(("corpus" = String, Path), ("thread" = String, Path)), request_body = Renamed,
    responses((status = 200, body = Thread), (status = 404)))]
async fn rename(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((corpus, id)): Path<(String, String)>,
    Body(renamed): Body<Renamed>,
) -> Result<Json<Value>> {
    let title = checked_title(&renamed.title)?;
    let thread = with_corpus(&app, &tenant, corpus, move |corpus| {
        let _one = kept::lock(corpus)?;
        let thread = Thread { title, ..kept::read(corpus, &id)?.0 };
        kept::write(corpus, &thread)?;
        Ok(thread)
    });
    Ok(Json(json!(thread.await?)))
}

/// Delete a thread.
#[utoipa::path(delete, path = "/v1/corpora/{corpus}/threads/{thread}", tag = "Memory",
    params(("corpus" = String, Path), ("thread" = String, Path)), responses((status = 204), (status = 404)))]
async fn remove(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((corpus, id)): Path<(String, String)>,
) -> Result<StatusCode> {
    with_corpus(&app, &tenant, corpus, move |corpus| {
        let _one = kept::lock(corpus)?;
        kept::delete::<Thread>(corpus, &id)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A thread for reading: every answer with its verdicts and sources.
fn markdown(thread: &Thread) -> String {
    let mut text = format!("# {}\n", thread.title);
    for turn in &thread.turns {
        let _ = write!(text, "\n## {}\n", turn.question);
        for answer in &turn.answers {
            let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let _ = write!(text, "\n{}\n\n*{}*\n", string(&answer["answer"]), string(&answer["method"]));
            for statement in answer["statements"].as_array().into_iter().flatten() {
                let verdict = string(&statement["verdict"]);
                if verdict != "supported" {
                    let _ = write!(text, "\n* {verdict}: {}\n", string(&statement["text"]));
                }
            }
            for (number, citation) in (1..).zip(answer["citations"].as_array().into_iter().flatten()) {
                let (path, quote) = (string(&citation["path"]), string(&citation["quote"]));
                let _ = write!(text, "\n[{number}] {path}, characters {} to {}:\n", citation["start"], citation["end"]);
                quote.lines().for_each(|line| text.extend(["> ", line, "\n"]));
            }
        }
    }
    text
}
