//! POST /v1/responses/input_tokens.

use axum::extract::State;
use axum::{Extension, Json};
use calls::{Agent, Call, Prompt};
use serde_json::{Value, json};

use super::read;
use super::request::{ResponseRequest, Source};
use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::recall::Address;
use crate::tenant::CurrentTenant;
use crate::warnings::Warnings;

/// Count the tokens of the prompt of a response that is not made.
#[utoipa::path(post, path = "/v1/responses/input_tokens", tag = "OpenAI", request_body = ResponseRequest,
    responses((status = 200, body = Value), (status = 400, description = "Refused"), (status = 404)))]
pub(super) async fn count(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    address: Address,
    AdmittedJson(request, _permit): AdmittedJson<ResponseRequest>,
) -> Result<Json<Value>> {
    let (app, asked, _) = read(app, &tenant, &warnings, address, request).await?;
    let call = match asked.source {
        Source::Model { call, .. } => *call,
        // The model that answers reads less than all: what it finds in the corpora is not known yet.
        Source::Corpora(consultation) => {
            let prompt = consultation.questions.into_iter().next().map_or_else(Prompt::new, |question| question.prompt);
            Call::new(Agent::Responder, "response", prompt, 1)
        }
    };
    let tokens = app.prompt_tokens(&call).await?;
    if tokens == usize::MAX {
        return Err(ServerError::invalid("the chat template of this model refuses these messages", "input"));
    }
    Ok(Json(json!({ "object": "response.input_tokens", "input_tokens": tokens })))
}
