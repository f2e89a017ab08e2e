//! Extractors for request bodies and query strings; their errors name the field at fault in OpenAI's error format.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, OriginalUri, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::app::App;
use crate::error::{Result, ServerError};
use crate::json::{in_words_of_numbers, parse};
use crate::warnings::Warnings;

/// A JSON body. Unknown fields are ignored with a warning where the route collects [`Warnings`], else refused.
pub(crate) struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ServerError;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // This check blocks cross-site form posts: browsers send a preflight request before JSON.
        if !kind.to_ascii_lowercase().starts_with("application/json") && !is_curl_for_ollama(&request, kind) {
            let message = format!("the body must be JSON (Content-Type: application/json), not `{kind}`");
            return Err(ServerError::refused(message));
        }
        let warnings = request.extensions().get::<Warnings>().cloned();
        let bytes = bytes(request, app).await?;
        // serde would take an array as the fields of a struct in order.
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            return Err(ServerError::refused("the body must be a JSON object, not an array"));
        }
        match warnings {
            Some(warnings) => warnings.read(parse(&bytes)?, "").map(Body),
            None => parse(&bytes).map(Body),
        }
    }
}

/// Whether a request is one of Ollama's documented examples, `curl URL -d '{...}'`: without a type, or with the one that curl adds,
/// and not by a browser, which says where its request comes from.
fn is_curl_for_ollama(request: &Request, kind: &str) -> bool {
    let path = request.extensions().get::<OriginalUri>().map_or(request.uri(), |OriginalUri(uri)| uri).path();
    path.starts_with("/api/")
        && matches!(kind, "" | "application/x-www-form-urlencoded")
        && ["origin", "referer", "sec-fetch-site"].iter().all(|name| !request.headers().contains_key(*name))
}

/// Reads the whole body before passing it on to a service that would report a broken body as its own failure.
pub(crate) async fn buffer(State(app): State<App>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match bytes(Request::from_parts(head.clone(), body), &app).await {
        Ok(bytes) => next.run(Request::from_parts(head, bytes.into())).await,
        Err(refused) => refused.into_response(),
    }
}

async fn bytes(request: Request, app: &App) -> Result<Bytes> {
    with_read_timeout(Bytes::from_request(request, app), app).await?.map_err(|refused| read_error(&refused, app))
}

/// Awaits a part of a request for at most `read_timeout`.
///
/// # Errors
/// [`ServerError::RequestTimeout`].
pub(crate) async fn with_read_timeout<T>(part: impl Future<Output = T>, app: &App) -> Result<T> {
    let limit = app.config.read_timeout;
    timeout(limit, part).await.map_err(|_| ServerError::RequestTimeout(limit))
}

/// The query string.
pub(crate) struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = ServerError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        let unusable = |refused: QueryRejection| {
            let text = refused.body_text();
            let what = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            let message = format!("the query string cannot be used: {}", in_words_of_numbers(what));
            let param = what.split_once(": ").map(|(name, _)| name.to_owned());
            ServerError::Invalid { message, param, hint: None }
        };
        Query::try_from_uri(&parts.uri).map(|Query(params)| Params(params)).map_err(unusable)
    }
}

fn read_error(refused: &BytesRejection, app: &App) -> ServerError {
    match refused.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ServerError::TooLarge { limit_bytes: app.config.max_body_bytes },
        _ => ServerError::refused(format!("the body cannot be read: {refused}")),
    }
}
