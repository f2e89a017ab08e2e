//! Liveness, readiness and metrics for monitoring.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde_json::{Value, json};

use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::guard::tenant;
use crate::offered::names;
use crate::tenant::CurrentTenant;
use crate::{engine, status};

/// GET /health: the process answers.
pub(crate) async fn health() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Timeout of the database check.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(3);

/// GET /ready: models are loaded, the engine is running, the database of shared corpora is reachable and the server is
/// not stopping. It needs no key; the models are named to holders only, if keys are required.
pub(crate) async fn ready(State(app): State<App>, headers: HeaderMap) -> Result<Json<Value>> {
    if app.stopping.load(Ordering::Relaxed) {
        return Err(ServerError::Stopping);
    }
    if !status::is_alive(&*app.caller) {
        return Err(ServerError::EngineEnded);
    }
    if let Some(database) = &app.config.vectors {
        let database = Arc::clone(database);
        run_blocking(move || Ok(database.check(DATABASE_TIMEOUT)?)).await.map_err(|error| {
            // /ready needs no key, so details go to the log only.
            tracing::warn!(%error, "the database of --vectors is unreachable");
            ServerError::NoDatabase
        })?;
    }
    let mut ready = json!({ "status": "ready" });
    if tenant(&app, &headers).is_ok() {
        ready["models"] = names(&app).into();
    }
    Ok(Json(ready))
}

/// GET /metrics in Prometheus' text format: all tenants' counts for the operator, otherwise those of the requesting
/// tenant.
pub(crate) async fn metrics(State(app): State<App>, Extension(tenant): CurrentTenant) -> impl IntoResponse {
    let text = if tenant.is_operator {
        app.metrics.render(None) + &engine::metrics(&app.states())
    } else {
        app.metrics.render(Some(tenant.id))
    };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}
