//! Errors in Anthropic's form.

use axum::http::StatusCode;
use serde_json::{Value, json};

/// An error object with Anthropic's names of kinds, beside the fields that it has.
pub(crate) fn in_anthropics_form(status: StatusCode, mut body: Value) -> Value {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let mut error = body["error"].take();
    error["type"] = kind.into();
    json!({ "type": "error", "error": error })
}
