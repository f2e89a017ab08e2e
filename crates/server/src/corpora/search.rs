//! POST /v1/corpora/{corpus}/search: one search tool with its scores.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use calls::WorkflowId;
use memory::{MemoryError, Session, Settings, Trace, methods};
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Corpus, Hit};
use utoipa::ToSchema;

use super::ready::prepare;
use crate::admitted::AdmittedJson;
use crate::app::{App, priority, random};
use crate::blocking::run_on_thread;
use crate::error::{Result, ServerError};
use crate::limits::{MAX_PAGES, count};
use crate::tenant::{CurrentTenant, Tenant};

/// A search request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchRequest {
    pub query: String,
    /// `bm25`, `dense` or `fused` (by default).
    pub tool: Option<String>,
    /// Number of pages; 10 by default.
    pub k: Option<usize>,
}

const DEFAULT_PAGES: usize = 10;

/// Maximum characters of a query or question: all of it is embedded, and a megabyte would keep the embedder for minutes.
const MAX_CHARS: usize = 65_536;

/// Refuses a `query` or `question` that is too long.
///
/// # Errors
/// [`ServerError::Invalid`] with both numbers.
pub(super) fn check_length(name: &str, text: &str) -> Result<()> {
    match text.chars().count() {
        ..=MAX_CHARS => Ok(()),
        chars => Err(ServerError::invalid(
            format!("a {name} has at most {MAX_CHARS} characters; this one has {chars}"),
            name,
        )),
    }
}

/// Search pages.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/search", tag = "Memory", params(("corpus" = String, Path)),
    request_body = SearchRequest, responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn search(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    AdmittedJson(request, _permit): AdmittedJson<SearchRequest>,
) -> Result<Json<Value>> {
    Ok(Json(json!({ "hits": search_pages(&app, &tenant, corpus, request).await? })))
}

/// The pages that a search finds, best first. Vectors that the search needs are computed, before the deadline.
pub(crate) async fn search_pages(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    request: SearchRequest,
) -> Result<Vec<Value>> {
    let tool = request
        .tool
        .as_deref()
        .unwrap_or("fused")
        .parse()
        .map_err(|reason: String| ServerError::invalid(reason, "tool"))?;
    let k = count(request.k.unwrap_or(DEFAULT_PAGES), MAX_PAGES, "k")?;
    check_length("query", &request.query)?;
    let query: Arc<str> = request.query.into();
    // The work runs on a thread, which does not know this task.
    let priority = priority();
    let work = || {
        let (app, tenant, corpus, query) = (Arc::clone(app), Arc::clone(tenant), corpus.clone(), Arc::clone(&query));
        move || async move {
            let corpus = tenant.open(&corpus)?;
            let trace = Trace::off();
            let session = Session {
                caller: &*app.caller,
                embedder: &*app.embedder,
                settings: Settings::default(),
                trace: &trace,
                workflow: WorkflowId(random()?),
                tenant: tenant.id,
                priority,
                on_text: None,
            };
            let hits = memory::search(&query, tool, k, &corpus, &session).await?;
            hits.iter().map(|hit| hit_json(hit, &corpus)).collect()
        }
    };
    app.with_deadline(async {
        match run_on_thread(work()).await {
            Err(ServerError::Memory(MemoryError::NoVectors { .. })) => {
                prepare(app, tenant, &corpus, &Settings::new(methods::SUBSTITUTE), None, |_| {}).await?;
                run_on_thread(work()).await
            }
            found => found,
        }
    })
    .await
}

fn hit_json(hit: &Hit, corpus: &Corpus) -> Result<Value> {
    let passage = corpus.passage(hit.passage)?;
    let document = corpus.document(passage.document)?;
    Ok(json!({
        "page": hit.passage, "score": hit.score, "document": document.id, "name": document.path,
        "start": passage.span.start_char, "end": passage.span.end_char, "text": corpus.passage_text(hit.passage)?,
    }))
}
