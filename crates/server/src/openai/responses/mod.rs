//! /v1/responses: OpenAI's newer API, with tools and responses that are kept, continued, cancelled and deleted.

mod background;
mod consultation;
mod conversation;
mod conversation_items;
mod conversations;
mod corpus;
mod file_search;
mod generation;
mod input_tokens;
mod items;
pub(crate) mod kept;
mod namespaces;
mod output;
mod request;
mod stored;
mod tools;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::quoted::Quoted;
use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::error::Result;
use crate::recall::{Address, find, quick};
use crate::stream::{Framing, respond};
use crate::tenant::{CurrentTenant, Tenant};
use crate::warnings::Warnings;
use generation::{Continued, Generation};
use request::{Asked, ResponseRequest};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(respond_to))
        .routes(routes!(input_tokens::count))
        .routes(routes!(stored::retrieve, stored::delete))
        .routes(routes!(stored::cancel))
        .routes(routes!(stored::input_items))
        .routes(routes!(conversations::create))
        .routes(routes!(conversations::retrieve, conversations::update, conversations::delete))
        .routes(routes!(conversation_items::list, conversation_items::create))
        .routes(routes!(conversation_items::retrieve, conversation_items::delete))
}

/// Create a response to a text or to items. A corpus as the model answers from memory.
#[utoipa::path(post, path = "/v1/responses", tag = "OpenAI", request_body = ResponseRequest,
    responses((status = 200, body = Value, description = "A response, or its events as server-sent events"),
        (status = 400, description = "Refused; a prompt that does not fit is reported with both numbers"),
        (status = 404, description = "No kept response has an item that the input refers to"),
        (status = 409, description = "Another response to the conversation is being made"),
        (status = 429, description = "Too many requests at once")))]
async fn respond_to(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    address: Address,
    AdmittedJson(request, permit): AdmittedJson<ResponseRequest>,
) -> Result<Response> {
    let (streams, in_background) = (request.stream.unwrap_or(false), request.background.unwrap_or(false));
    let stores = request.stores(&app);
    let previous = request.previous_response_id.clone();
    let held = request.conversation()?.map(|id| tenant.responses.hold(id)).transpose()?;
    let (app, asked, quoted) = read(app, &tenant, &warnings, address, request).await?;
    let (corpora, states) = (quoted.corpora.clone(), quoted.states.clone());
    let continued = held.map(|held| Continued { held, corpora: corpora.clone() });
    let record = stores.then(|| asked.record(previous, corpora));
    let generation = move |sink| Generation::new(asked, record, continued, states, warnings, sink);
    if in_background {
        return Ok(Json(background::start(app, tenant, generation(None)?, permit).await?).into_response());
    }
    if !streams {
        let response = generation(None)?.run(&app, &tenant).await?;
        return Ok((Extension(quoted), Json(response)).into_response());
    }
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        generation(Some(sink))?.stream(&app, &tenant).await
    })
    .await
}

/// Reads a request with the items that it continues or refers to. Returns the app that serves it, what it asks for,
/// and what the reply may quote.
async fn read(
    app: App,
    tenant: &Arc<Tenant>,
    warnings: &Warnings,
    address: Address,
    mut request: ResponseRequest,
) -> Result<(App, Asked, Quoted)> {
    let (earlier, mut corpora) = match (&request.previous_response_id, request.conversation()?) {
        (Some(id), _) => stored::chain(tenant, id.clone()).await?,
        (None, Some(id)) => {
            let read = conversations::with(&app, tenant, move |conversations| conversations.read(&id)).await?;
            // The response has one item at least.
            read.check_room(request.input.count() + 1)?;
            (read.items, read.corpora)
        }
        (None, None) => (Vec::new(), Vec::new()),
    };
    corpora.extend(stored::resolve(tenant, &mut request.input).await?);
    let search = request.file_search(warnings)?;
    let models = match &search {
        Some(search) => quick(tenant, search.stores.clone()).await?,
        None => find(&app, tenant, &request.model).await?.into_iter().collect(),
    };
    let app = if models.is_empty() { app.serving(&request.model).await? } else { app };
    corpora.extend(models.iter().map(|model| model.corpus.clone()));
    let quoted = Quoted::before(tenant, corpora).await?;
    let asked = request.read((models, address), search, &earlier, (&app, tenant), warnings)?;
    Ok((app, asked, quoted))
}
