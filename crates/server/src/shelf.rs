//! GET /v1/shelf and POST /v1/shelf/pull: the models that this machine could serve, and their download.

use std::sync::TryLockError;

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::openai::names;
use crate::pulling::{PullProgress, ShelfModel};
use crate::stream::{Framing, respond};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(pull))
}

/// The model to fetch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PullRequest {
    /// A name of `GET /v1/shelf`.
    model: String,
}

/// Show the models that this machine could serve: whether each is loaded and on the disk, and whether it would fit beside
/// what is loaded. Empty where models come from elsewhere.
#[utoipa::path(get, path = "/v1/shelf", tag = "Engine", responses((status = 200, body = Value)))]
async fn show(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    let may_pull = tenant.is_operator;
    run_blocking(move || {
        let Some(shelf) = &app.config.shelf else {
            return Ok(Json(json!({ "models": [], "free_bytes": null, "may_pull": false })));
        };
        let (loaded, free) = (names(&app), shelf.free_bytes());
        let line = |model: ShelfModel| {
            let mut line = json!(model);
            line["loaded"] = loaded.contains(&model.name).into();
            line["fits"] = free.map(|free| model.memory_bytes <= free).into();
            line
        };
        let models: Vec<Value> = shelf.list().into_iter().map(line).collect();
        Ok(Json(json!({ "models": models, "free_bytes": free, "may_pull": may_pull })))
    })
    .await
}

/// Fetch a model to this disk: events `progress`, then `done`. The download goes on if the client disconnects. A server loads it
/// at its next start, with `--model`.
#[utoipa::path(post, path = "/v1/shelf/pull", tag = "Engine", request_body = PullRequest,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 403), (status = 404),
        (status = 409, description = "A model is being fetched")))]
async fn pull(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<PullRequest>,
) -> Result<Response> {
    if !tenant.is_operator {
        return Err(ServerError::OperatorOnly);
    }
    let Some(shelf) = app.config.shelf.clone() else { return Err(ServerError::NotFound("shelf of models".into())) };
    respond(Framing::Events, |sink| async move {
        let progress = sink.clone();
        run_blocking(move || {
            if !shelf.list().iter().any(|model| model.name == request.model) {
                return Err(ServerError::NotFound(format!("model {} on the shelf", request.model)));
            }
            let _one = match app.pulling.0.try_lock() {
                Err(TryLockError::WouldBlock) => return Err(ServerError::Pulling),
                Ok(one) => one,
                Err(TryLockError::Poisoned(one)) => one.into_inner(),
            };
            let report = &mut |at: PullProgress| progress.event("progress", &at);
            shelf.pull(&request.model, report).map_err(|(message, hint)| ServerError::Pull { message, hint })
        })
        .await?;
        sink.event("done", &json!({}));
        Ok(())
    })
    .await
}
