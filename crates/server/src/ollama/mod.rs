//! Ollama's API: chat, generate, embed, what clients ask about models, and loading, fetching, naming and removing them.
//!
//! Unknown fields and options are ignored with a warning, as by
//! Ollama; errors are its plain strings.

pub(crate) mod blobs;
mod changes;
mod corpus;
mod embed;
mod generate;
mod keep;
mod messages;
mod models;
mod options;
mod reply;
mod tools;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::ErrorText;
use crate::warnings;

pub(crate) use options::with_preset;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(generate::chat))
        .routes(routes!(generate::generate))
        .routes(routes!(embed::embed))
        .routes(routes!(embed::embed_one))
        .routes(routes!(models::tags))
        .routes(routes!(models::show))
        .routes(routes!(models::ps))
        .routes(routes!(models::version))
        .routes(routes!(changes::pull))
        .routes(routes!(changes::create))
        .routes(routes!(changes::copy))
        .routes(routes!(changes::delete))
        .routes(routes!(blobs::find, blobs::upload))
        .layer(middleware::from_fn(warnings::collect))
}

/// Answers as Ollama where its clients look for it: `/` for programs, which do not ask for a page, and errors below `/api/`.
pub(crate) async fn compatible(request: Request, next: Next) -> Response {
    let is_root = request.uri().path() == "/";
    let is_ollama = request.uri().path().starts_with("/api/");
    let wants_page = accepts_html(request.headers());
    let mut response = next.run(request).await;
    if is_root && response.status().is_success() {
        if !wants_page {
            response = "Ollama is running".into_response();
        }
        response.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
    }
    match response.extensions_mut().remove::<ErrorText>() {
        Some(ErrorText(text)) if is_ollama => {
            let mut plain = Json(json!({ "error": text })).into_response();
            *plain.status_mut() = response.status();
            for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE, header::WARNING] {
                if let Some(value) = response.headers().get(&name) {
                    plain.headers_mut().insert(name, value.clone());
                }
            }
            plain.extensions_mut().extend(std::mem::take(response.extensions_mut()));
            plain
        }
        _ => response,
    }
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT);
    accepted.iter().any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}
