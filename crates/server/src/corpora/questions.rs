//! Suggested questions: made once from a corpus, and kept beside it until a document is deleted.

use std::fs;
use std::io;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use calls::{Priority, WorkflowId};
use memory::{Session, Trace};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Corpus, private};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::kept;
use super::settings::default_settings;
use crate::app::{App, random};
use crate::blocking::{run_blocking, run_on_thread};
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, make))
}

const FILE: &str = "questions.json";

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Documents of the corpus when they were made.
    documents: usize,
    questions: Value,
}

/// Deletes the questions of a corpus: they may quote a document that is deleted.
pub(crate) fn forget(corpus: &Corpus) -> Result<()> {
    match fs::remove_file(corpus.file(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

/// Show the suggested questions of a corpus; `made` is false before they were made, and once it has twice the documents.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/questions", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn show(Extension(tenant): CurrentTenant, Path(corpus): Path<String>) -> Result<Json<Value>> {
    run_blocking(move || {
        let corpus = tenant.open(&corpus)?;
        let bytes = match fs::read(corpus.file(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Json(json!({ "made": false, "questions": [] })));
            }
            bytes => bytes?,
        };
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} is damaged: {error}"));
        let Kept { documents, questions } = serde_json::from_slice(&bytes).map_err(damaged)?;
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
            let made = Kept { documents: corpus.documents()?.len(), questions: json!(suggestions) };
            let _one = kept::lock(&corpus)?;
            // They may quote a text that was replaced meanwhile.
            if tenant.forget.state(&corpus.name().to_string())? == state {
                private::replace(&corpus.file(FILE), json!(made).to_string())?;
            }
            Ok(Json(json!({ "made": true, "questions": made.questions })))
        }
    };
    app.with_deadline(run_on_thread(work)).await
}
