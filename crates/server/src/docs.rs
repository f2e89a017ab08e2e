//! /openapi.json: the description of this API, made from its handlers. The page /docs shows it.

use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::OpenApi;

use crate::app::App;

pub(crate) fn routes(document: OpenApi) -> Router<App> {
    Router::new().route("/openapi.json", get(|| async move { Json(document) }))
}
