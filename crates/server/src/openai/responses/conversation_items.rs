//! The items of a conversation.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::super::paging::{Part, listed};
use super::conversation::Conversation;
use super::conversations::{change, read_items, with};
use crate::app::App;
use crate::body::{Body, Params};
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;
use crate::warnings::Warnings;

/// Items to add, at most 20.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewItems {
    items: Vec<Value>,
}

fn find(conversation: &Conversation, id: &str) -> Result<usize> {
    let place = conversation.items.iter().position(|item| item["id"] == id);
    place.ok_or_else(|| ServerError::NotFound(format!("item {id}")))
}

/// Add items to a conversation.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/items", tag = "OpenAI",
    params(("conversation_id" = String, Path)), request_body = NewItems,
    responses((status = 200, body = Value), (status = 404),
        (status = 409, description = "A response to the conversation is being made, or this server keeps none")))]
pub(super) async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    Path(id): Path<String>,
    Body(new): Body<NewItems>,
) -> Result<Json<Value>> {
    let items = read_items(new.items, &warnings)?;
    let added = items.clone();
    let _held = tenant.responses.hold(id.clone())?;
    change(&app, &tenant, id, move |conversation| conversation.extend(items)).await?;
    let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    Ok(Json(json!({ "object": "list", "first_id": id(added.first()), "last_id": id(added.last()), "has_more": false,
        "data": added })))
}

/// List the items of a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items", tag = "OpenAI",
    params(("conversation_id" = String, Path), Part), responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn list(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(id): Path<String>,
    Params(part): Params<Part>,
) -> Result<Json<Value>> {
    let items = with(&app, &tenant, move |conversations| Ok(conversations.read(&id)?.items)).await?;
    Ok(Json(listed(items, &part, (20, 100))?))
}

/// Show an item of a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/items/{item_id}", tag = "OpenAI",
    params(("conversation_id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn retrieve(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((id, item)): Path<(String, String)>,
) -> Result<Json<Value>> {
    let read = with(&app, &tenant, move |conversations| {
        let mut conversation = conversations.read(&id)?;
        let place = find(&conversation, &item)?;
        Ok(conversation.items.swap_remove(place))
    });
    Ok(Json(read.await?))
}

/// Delete an item of a conversation.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}/items/{item_id}", tag = "OpenAI",
    params(("conversation_id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn delete(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((id, item)): Path<(String, String)>,
) -> Result<Json<Value>> {
    let changed = change(&app, &tenant, id, move |conversation| {
        let place = find(conversation, &item)?;
        conversation.items.remove(place);
        Ok(conversation.to_json())
    });
    Ok(Json(changed.await?))
}
