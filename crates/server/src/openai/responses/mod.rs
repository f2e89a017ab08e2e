//! /v1/responses: OpenAI's newer API, with tools and responses that are kept, continued, cancelled and deleted.

mod background;
mod conversation_items;
mod conversations;
mod corpus;
mod file_search;
mod items;
mod output;
mod request;
mod stored;
mod tools;

pub(crate) use stored::Responses;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, Finish, OnText};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::params::OutputLength;
use super::thinking;
use crate::admission::AdmittedJson;
use crate::app::App;
use crate::corpora::CurrentTenant;
use crate::error::Result;
use crate::recall::{Address, find, quick};
use crate::stream::{Framing, Sink, respond};
use crate::tenant::Tenant;
use crate::warnings::Warnings;
use output::{Output, usage};
use request::{Asked, ResponseRequest, Source};
use stored::Record;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(respond_to))
        .routes(routes!(stored::retrieve, stored::delete))
        .routes(routes!(stored::cancel))
        .routes(routes!(stored::input_items))
        .routes(routes!(conversations::create))
        .routes(routes!(conversations::retrieve, conversations::update, conversations::delete))
        .routes(routes!(conversation_items::list, conversation_items::create))
        .routes(routes!(conversation_items::retrieve, conversation_items::delete))
}

/// A response that is being made.
struct Generation {
    asked: Asked,
    output: Arc<Mutex<Output>>,
    /// What is kept when it has ended.
    record: Option<Record>,
    continued: Option<Continued>,
}

/// The conversation that a response is part of, and the corpora that it may quote.
struct Continued {
    id: String,
    corpora: Vec<String>,
}

/// Create a response to a text or to items. A corpus as the model answers from memory.
#[utoipa::path(post, path = "/v1/responses", tag = "OpenAI", request_body = ResponseRequest,
    responses((status = 200, body = Value, description = "A response, or its events as server-sent events"),
        (status = 400, description = "Refused; a prompt that does not fit is reported with both numbers"),
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
    let conversation = request.conversation()?;
    let (earlier, mut corpora) = match (&previous, conversation.clone()) {
        (Some(id), _) => stored::chain(&tenant, id.clone()).await?,
        (None, Some(id)) => {
            let read = conversations::with(&app, &tenant, move |conversations| conversations.read(&id)).await?;
            (read.items, read.corpora)
        }
        (None, None) => (Vec::new(), Vec::new()),
    };
    let search = request.file_search(&warnings)?;
    let models = match &search {
        Some(search) => quick(&tenant, search.stores.clone()).await?,
        None => find(&app, &tenant, &request.model).await?.into_iter().collect(),
    };
    let app = if models.is_empty() { app.serving(&request.model).await? } else { app };
    corpora.extend(models.iter().map(|model| model.corpus.clone()));
    let asked = request.read((models, address), search, &earlier, (&app, &tenant), &warnings)?;
    let continued = conversation.map(|id| Continued { id, corpora: corpora.clone() });
    let record = stores.then(|| Record::new(&asked, previous, corpora));
    let generation = move |sink| Generation::new(asked, record, continued, sink);
    if in_background {
        return Ok(Json(background::start(app, tenant, generation(None)?, permit).await?).into_response());
    }
    if !streams {
        return Ok(Json(generation(None)?.run(&app, &tenant).await?).into_response());
    }
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        generation(Some(sink))?.stream(&app, &tenant).await
    })
    .await
}

impl Generation {
    fn new(
        asked: Asked,
        record: Option<Record>,
        continued: Option<Continued>,
        sink: Option<Sink>,
    ) -> Result<Generation> {
        let output = Output::new(&asked.frame, sink)?;
        Ok(Generation { asked, output: Arc::new(Mutex::new(output)), record, continued })
    }

    /// The finished response, which is kept if it is to be.
    async fn run(&self, app: &App, tenant: &Arc<Tenant>) -> Result<Value> {
        let response = match &self.asked.source {
            Source::Model { call, length, thinking_tokens } => {
                app.with_deadline(self.of_model(call, *length, *thinking_tokens, app)).await?
            }
            Source::Corpora(consultation) => self.of_corpora(consultation, app, tenant).await?,
        };
        if let Some(Continued { id, corpora }) = &self.continued {
            let output = response["output"].as_array().into_iter().flatten();
            let items = self.asked.input.iter().chain(output).cloned().collect();
            conversations::append(app, tenant, id.clone(), items, corpora.clone()).await?;
        }
        if let Some(record) = &self.record {
            stored::put(tenant, record.with_response(response.clone())).await?;
        }
        Ok(response)
    }

    /// Sends the events of the response.
    async fn stream(&self, app: &App, tenant: &Arc<Tenant>) -> Result<()> {
        match self.run(app, tenant).await {
            Ok(response) => {
                let is_complete = response["status"] == "completed";
                let name = if is_complete { "response.completed" } else { "response.incomplete" };
                lock(&self.output).send_response(name, &response);
                Ok(())
            }
            Err(error) => {
                let mut output = lock(&self.output);
                // A refusal before the first event has its own status.
                if !output.has_started() {
                    return Err(error);
                }
                let failed = self.asked.frame.failed(&error, output.finished());
                output.send_response("response.failed", &failed);
                Ok(())
            }
        }
    }

    async fn of_model(&self, call: &Call, length: OutputLength, thinking_tokens: usize, app: &App) -> Result<Value> {
        let output = Arc::clone(&self.output);
        let on_text = OnText::pieces(move |piece| lock(&output).piece(piece));
        let mut call = Call { on_text: Some(on_text), ..call.clone() };
        let prompt_tokens = app.prompt_tokens(&call).await?;
        call.limits = thinking::limits(app, &call, prompt_tokens, length, thinking_tokens)?;
        let agent = call.agent;
        let reply = app.call(call.tenant, call).await?;
        let reasoning_tokens = reply.thought.as_ref().map_or(0, |thought| app.caller.count_tokens(agent, thought));
        let is_complete = matches!(reply.finish, Finish::Stop | Finish::Repetition);
        Ok(self.finished(is_complete, usage(reply.usage, reasoning_tokens)))
    }

    fn finished(&self, is_complete: bool, usage: Value) -> Value {
        let mut output = lock(&self.output);
        output.end(is_complete);
        let status = if is_complete { "completed" } else { "incomplete" };
        let mut object = self.asked.frame.object(status, output.finished(), Some(usage));
        if !is_complete {
            object["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        }
        object
    }
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}
