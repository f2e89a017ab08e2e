//! For those who watch over the server: is it alive, does it take requests, what has it done.

use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{Result, ServerError};
use crate::{engine, openai};

/// GET /health: the process answers.
pub(crate) async fn health() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// GET /ready: models are loaded, the engine runs and the server is not stopping.
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Value>> {
    if app.stopping.load(Ordering::Relaxed) {
        return Err(ServerError::Stopping);
    }
    if !app.caller.is_alive() {
        return Err(ServerError::Ended);
    }
    Ok(Json(json!({ "status": "ready", "models": openai::names(&app) })))
}

/// GET /metrics, in Prometheus' text form.
pub(crate) async fn metrics(State(app): State<App>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        app.metrics.render() + &engine::metrics(&app.caller.state()),
    )
}
