//! /openapi.json: the OpenAPI document generated from the handlers; /docs displays it.

use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::OpenApi;

use crate::app::App;

pub(crate) fn routes(document: OpenApi) -> Router<App> {
    Router::new().route("/openapi.json", get(|| async move { Json(document) }))
}
