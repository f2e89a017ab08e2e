//! Engine state: GET /v1/engine, and the same numbers as metrics.

use std::convert::Infallible;
use std::fmt::Write;

use axum::extract::State;
use axum::{Extension, Json};
use calls::ModelState;
use serde_json::{Value, json};
use tokio::time::sleep;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::{Result, ServerError};
use crate::history::SAMPLE_EVERY;
use crate::tenant::CurrentTenant;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(history))
}

/// Show the state of the engine for each model: KV pages, running and waiting calls, tokens per second over the last
/// seconds. The list is empty if the backend does not report its state. A tenant other than the operator sees only
/// `model` and `total_pages`, since the rest depends on other tenants' calls.
#[utoipa::path(get, path = "/v1/engine", tag = "Engine", responses((status = 200, body = Value)))]
async fn show(State(app): State<App>, Extension(tenant): CurrentTenant) -> Json<Value> {
    let states = app.states();
    if tenant.is_operator {
        return Json(json!({ "models": states }));
    }
    let public = |state: &ModelState| json!({ "model": state.model, "total_pages": state.total_pages });
    Json(json!({ "models": states.iter().map(public).collect::<Vec<_>>() }))
}

/// Show the states of the engine over the last minutes, the oldest first: one list of models, as in `/v1/engine`, every two
/// seconds.
#[utoipa::path(get, path = "/v1/engine/history", tag = "Engine", responses((status = 200, body = Value), (status = 403)))]
async fn history(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    if !tenant.is_operator {
        return Err(ServerError::OperatorOnly);
    }
    Ok(Json(json!({ "seconds": SAMPLE_EVERY.as_secs(), "samples": app.history.samples() })))
}

/// Takes samples for as long as it is polled.
pub(crate) async fn sample(app: &App) -> Infallible {
    loop {
        app.history.push(app.states());
        sleep(SAMPLE_EVERY).await;
    }
}

/// A gauge or counter of a model: name, type, help text and value.
type Metric = (&'static str, &'static str, &'static str, fn(&ModelState) -> f64);

const METRICS: [Metric; 11] = [
    ("memlocal_kv_pages", "gauge", "KV pages.", |state| state.total_pages as f64),
    ("memlocal_kv_pages_used", "gauge", "KV pages of running calls.", |state| state.used_pages as f64),
    ("memlocal_kv_pages_cached", "gauge", "Cached KV pages without users.", |state| state.cached_pages as f64),
    ("memlocal_engine_running", "gauge", "Running calls.", |state| state.running as f64),
    ("memlocal_engine_waiting", "gauge", "Waiting calls.", |state| state.waiting as f64),
    ("memlocal_engine_steps_total", "counter", "Engine steps.", |state| state.steps as f64),
    ("memlocal_engine_read_tokens_total", "counter", "Computed prompt tokens.", |state| state.read_tokens as f64),
    ("memlocal_engine_cached_tokens_total", "counter", "Prompt tokens of finished calls that were cached.", |state| {
        state.cached_tokens as f64
    }),
    ("memlocal_engine_written_tokens_total", "counter", "Generated tokens.", |state| state.written_tokens as f64),
    (
        "memlocal_engine_read_tokens_per_second",
        "gauge",
        "Computed prompt tokens per second over the last seconds.",
        |state| rate(state.read_tokens_per_second),
    ),
    (
        "memlocal_engine_written_tokens_per_second",
        "gauge",
        "Generated tokens per second over the last seconds.",
        |state| rate(state.written_tokens_per_second),
    ),
];

/// Rounds to three decimals, so that a decaying average reaches 0.
fn rate(per_second: f64) -> f64 {
    (per_second * 1000.0).round() / 1000.0
}

/// The numbers in Prometheus' text format.
pub(crate) fn metrics(states: &[ModelState]) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in METRICS {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for state in states {
            let model = state.model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = writeln!(text, "{name}{{model=\"{model}\"}} {}", value(state));
        }
    }
    text
}
