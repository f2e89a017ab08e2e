//! GET /v1/traces/{trace}: the trace of a question.

use axum::Extension;
use axum::extract::Path;
use axum::http::header;
use axum::response::IntoResponse;

use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;

/// Show all calls and searches of an answer.
#[utoipa::path(get, path = "/v1/traces/{trace}", tag = "Memory", params(("trace" = String, Path)),
    responses((status = 200, body = serde_json::Value), (status = 404)))]
pub(super) async fn show(Extension(tenant): CurrentTenant, Path(trace): Path<String>) -> Result<impl IntoResponse> {
    let json = run_blocking(move || {
        let json = tenant.traces.json(&trace, |corpus| tenant.forget.state(corpus))?;
        json.ok_or_else(|| ServerError::NotFound(format!("trace {trace}")))
    })
    .await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json))
}
