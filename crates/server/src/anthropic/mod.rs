//! Anthropic's API: messages, streamed or whole, with tools and thoughts, and the count of their tokens.
//!
//! Unknown fields are ignored without a warning, as Anthropic's clients expect of gateways. Fields that have no effect on an answer from a
//! corpus are named.

mod corpus;
pub(crate) mod error;
mod messages;
mod reply;
mod request;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Agent, Call};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::recall::{Address, find};
use crate::stream::{Framing, respond};
use crate::tenant::CurrentTenant;
use crate::warnings::Warnings;
use error::in_anthropics_form;
use reply::Generation;
use request::MessagesRequest;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(messages)).routes(routes!(count_tokens))
}

/// Continue a conversation.
#[utoipa::path(post, path = "/v1/messages", tag = "Anthropic", request_body = MessagesRequest,
    responses((status = 200, description = "A message, or its events as server-sent events",
            content((Value = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "Refused"),
        (status = 429, description = "Too many requests at once")))]
async fn messages(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    address: Address,
    AdmittedJson(request, permit): AdmittedJson<MessagesRequest>,
) -> Result<Response> {
    let (streams, max_tokens) = (request.stream(), request.max_tokens()?);
    if let Some(model) = find(&app, &tenant, request.model()).await? {
        let warnings = Warnings::default();
        let mut response = corpus::reply(app, tenant, model, address, request, permit, &warnings).await?;
        warnings.write(&mut response);
        return Ok(response);
    }
    let app = app.serving(request.model()).await?;
    let generation = Generation::new(request.read(&app, tenant.id)?, max_tokens)?;
    if !streams {
        let message = app.with_deadline(generation.message(&app)).await?;
        return Ok(Json(message).into_response());
    }
    respond(Framing::AnthropicEvents, |sink| async move {
        let _permit = permit;
        app.with_deadline(generation.stream(sink, &app)).await
    })
    .await
}

/// Count the tokens of a conversation's prompt.
#[utoipa::path(post, path = "/v1/messages/count_tokens", tag = "Anthropic", request_body = MessagesRequest,
    responses((status = 200, body = Value), (status = 400, description = "Refused")))]
async fn count_tokens(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    AdmittedJson(request, _permit): AdmittedJson<MessagesRequest>,
) -> Result<Json<Value>> {
    let (app, call) = if find(&app, &tenant, request.model()).await?.is_some() {
        // The model that answers reads less than all: what it finds in the corpus is not known yet.
        (app, Call::new(Agent::Responder, "messages", request.prompt()?, 1))
    } else {
        let app = app.serving(request.model()).await?;
        let call = request.read(&app, tenant.id)?.call;
        (app, call)
    };
    let tokens = app.prompt_tokens(&call).await?;
    if tokens == usize::MAX {
        let message = "the chat template of this model refuses these messages";
        return Err(ServerError::invalid(message, "messages"));
    }
    Ok(Json(json!({ "input_tokens": tokens })))
}

/// An error response larger than this is none of ours.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// Gives errors Anthropic's form: those of these routes, and below `/v1/` all that its clients receive. Of the paths that both
/// APIs have, `/v1/models` answers clients of both, and `/v1/files` those of OpenAI alone.
pub(crate) async fn errors(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_client = path.starts_with("/v1/") && request.headers().contains_key("anthropic-version");
    let is_ours = is_client || path.starts_with("/v1/messages");
    let wants_files = is_client && path.starts_with("/v1/files");
    let response = if wants_files { ServerError::OpenAiFiles.into_response() } else { next.run(request).await };
    let status = response.status();
    if !is_ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let bytes = to_bytes(body, MAX_ERROR_BYTES).await.unwrap_or_default();
    let body = match serde_json::from_slice(&bytes) {
        Ok(body) => Body::from(in_anthropics_form(status, body).to_string()),
        Err(_) => Body::from(bytes),
    };
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, body)
}
