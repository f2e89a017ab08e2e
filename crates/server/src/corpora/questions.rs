//! The routes of suggested questions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use calls::{Priority, WorkflowId};
use memory::{Session, Trace};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::kept;
use super::settings::default_settings;
use super::suggested::{self, Suggested};
use crate::app::{App, random};
use crate::blocking::{run_blocking, run_on_thread};
use crate::error::{Result, ServerError};
use crate::lost::CorpusState;
use crate::tenant::CurrentTenant;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, make))
}

/// Show the suggested questions of a corpus; `made` is false before they were made, and once it has twice the documents.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/questions", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn show(Extension(tenant): CurrentTenant, Path(corpus): Path<String>) -> Result<Json<Value>> {
    run_blocking(move || {
        let corpus = tenant.open(&corpus)?;
        let Some(Suggested { documents, questions }) = suggested::read(&corpus)? else {
            return Ok(Json(json!({ "made": false, "questions": [] })));
        };
        let made = corpus.documents()?.len() < 2 * documents;
        Ok(Json(json!({ "made": made, "questions": questions })))
    })
    .await
}

/// Make the suggested questions of a corpus anew from its documents, and keep them.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/questions", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn make(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
) -> Result<Json<Value>> {
    let _permit = app.admission.acquire(tenant.id)?;
    let work = {
        let app = Arc::clone(&app);
        move || async move {
            // The first opening of a shared corpus creates its folder.
            drop(tenant.open(&corpus)?);
            let state = tenant.forget.state(&corpus)?;
            let corpus = tenant.open(&corpus)?;
            let trace = Trace::off();
            let session = Session {
                caller: &*app.caller,
                embedder: &*app.embedder,
                settings: default_settings(),
                trace: &trace,
                workflow: WorkflowId(random()?),
                tenant: tenant.id,
                priority: Priority::Bulk,
                on_text: None,
            };
            let suggestions = memory::suggest(&corpus, &session).await.map_err(ServerError::from)?;
            let made = Suggested { documents: corpus.documents()?.len(), questions: json!(suggestions) };
            let _one = kept::lock(&corpus)?;
            // They may quote a text that was replaced meanwhile.
            if CorpusState::of(&corpus)? == state {
                suggested::write(&corpus, &made)?;
            }
            Ok(Json(json!({ "made": true, "questions": made.questions })))
        }
    };
    app.with_deadline(run_on_thread(work)).await
}
