//! /v1/conversations: items that responses continue and add to, kept as stored responses are.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::super::metadata::Metadata;
use super::super::quoted::states_of;
use super::super::records::Records;
use super::conversation::Conversation;
use super::items::{Input, Items};
use crate::app::{App, fresh_id, since_1970};
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::lost::CorpusState;
use crate::tenant::{CurrentTenant, Tenant};
use crate::warnings::Warnings;

/// The conversation of a request: its id, or an object with it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected the id of a conversation, or an object with it")]
pub(super) enum Named {
    Id(String),
    Object { id: String },
}

impl Named {
    pub fn id(&self) -> &str {
        match self {
            Named::Id(id) | Named::Object { id } => id,
        }
    }
}

/// Maximum items that are added at once by a client.
const MAX_NEW_ITEMS: usize = 20;

/// Items of a client in the form in which conversations list them: messages have a type and parts.
pub(super) fn read_items(items: Vec<Value>, warnings: &Warnings) -> Result<Vec<Value>> {
    if items.is_empty() {
        return Ok(items);
    }
    if items.len() > MAX_NEW_ITEMS {
        return Err(ServerError::invalid(format!("at most {MAX_NEW_ITEMS} items are added at once"), "items"));
    }
    let mut items = Input::Items(items).into_items()?;
    Items::read(&items.iter().collect::<Vec<_>>(), warnings)?;
    items.iter_mut().for_each(complete);
    Ok(items)
}

/// Gives a message the fields that clients may leave out.
pub(super) fn complete(item: &mut Value) {
    if item.get("type").is_none_or(|kind| kind == "message") {
        item["type"] = "message".into();
        if item.get("status").is_none() {
            item["status"] = "completed".into();
        }
        if let Some(text) = item["content"].as_str() {
            let kind = if item["role"] == "assistant" { "output_text" } else { "input_text" };
            let mut part = json!({ "type": kind, "text": text });
            if kind == "output_text" {
                part["annotations"] = json!([]);
            }
            item["content"] = json!([part]);
        }
    }
}

/// Runs a task on the conversations of a tenant.
///
/// # Errors
/// [`ServerError::NoThreads`] if none are kept, and those of the task.
pub(super) async fn with<T: Send + 'static>(
    app: &App,
    tenant: &Arc<Tenant>,
    work: impl FnOnce(&Records<Conversation>) -> Result<T> + Send + 'static,
) -> Result<T> {
    if !app.config.keep_threads {
        return Err(ServerError::NoThreads);
    }
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.responses.conversations)).await
}

/// Changes a conversation.
pub(super) async fn change<T: Send + 'static>(
    app: &App,
    tenant: &Arc<Tenant>,
    id: String,
    work: impl FnOnce(&mut Conversation) -> Result<T> + Send + 'static,
) -> Result<T> {
    with(app, tenant, move |conversations| {
        let _one = conversations.lock()?;
        let mut conversation = conversations.read(&id)?;
        let outcome = work(&mut conversation)?;
        conversations.write(&conversation)?;
        conversations.trim()?;
        Ok(outcome)
    })
    .await
}

/// Adds the items of a response, unless the conversation, or a text that they may quote, was deleted since the corpora had these
/// states.
pub(super) async fn append(
    app: &App,
    tenant: &Arc<Tenant>,
    id: String,
    mut items: Vec<Value>,
    corpora: Vec<String>,
    states: Vec<CorpusState>,
) -> Result<()> {
    items.iter_mut().for_each(complete);
    let owner = Arc::clone(tenant);
    let added = change(app, tenant, id, move |conversation| {
        if states_of(&owner, &corpora)? != states {
            return Ok(());
        }
        let new: Vec<String> = corpora.into_iter().filter(|name| !conversation.corpora.contains(name)).collect();
        conversation.corpora.extend(new);
        conversation.extend(items)
    });
    match added.await {
        Err(ServerError::NotFound(_)) => Ok(()),
        added => added,
    }
}

/// A new conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewConversation {
    metadata: Option<Metadata>,
    /// At most 20.
    items: Option<Vec<Value>>,
}

/// New metadata.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationUpdate {
    metadata: Metadata,
}

/// Begin a conversation.
#[utoipa::path(post, path = "/v1/conversations", tag = "OpenAI", request_body = NewConversation,
    responses((status = 200, body = Value), (status = 409, description = "This server keeps none")))]
pub(super) async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    Body(new): Body<NewConversation>,
) -> Result<Json<Value>> {
    let items = read_items(new.items.unwrap_or_default(), &warnings)?;
    let (id, created) = (fresh_id("conv")?, since_1970().as_secs());
    let Metadata(metadata) = new.metadata.unwrap_or_default();
    let conversation = Conversation { id, created, updated: created, metadata, corpora: Vec::new(), items };
    let shown = conversation.to_json();
    with(&app, &tenant, move |conversations| {
        let _one = conversations.lock()?;
        conversations.write(&conversation)?;
        conversations.trim()
    })
    .await?;
    Ok(Json(shown))
}

/// Show a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}", tag = "OpenAI",
    params(("conversation_id" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn retrieve(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(id): Path<String>,
) -> Result<Json<Value>> {
    Ok(Json(with(&app, &tenant, move |conversations| Ok(conversations.read(&id)?.to_json())).await?))
}

/// Change the metadata of a conversation.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}", tag = "OpenAI",
    params(("conversation_id" = String, Path)), request_body = ConversationUpdate,
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn update(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(id): Path<String>,
    Body(update): Body<ConversationUpdate>,
) -> Result<Json<Value>> {
    let changed = change(&app, &tenant, id, move |conversation| {
        conversation.metadata = update.metadata.0;
        Ok(conversation.to_json())
    });
    Ok(Json(changed.await?))
}

/// Delete a conversation with its items.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}", tag = "OpenAI",
    params(("conversation_id" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn delete(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(id): Path<String>,
) -> Result<Json<Value>> {
    let deleted = json!({ "id": id, "object": "conversation.deleted", "deleted": true });
    with(&app, &tenant, move |conversations| {
        let _one = conversations.lock()?;
        conversations.remove(&id)
    })
    .await?;
    Ok(Json(deleted))
}
