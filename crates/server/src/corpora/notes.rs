//! The routes of notes.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use store::Corpus;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::documents::reading;
use super::kept::{self, Record};
use super::note::{Note, Saved};
use super::thread::{TurnAnswer, answer_of, title_of};
use crate::app::{App, fresh_id, since_1970};
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::tenant::{CurrentTenant, Tenant};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(change, remove))
}

/// Maximum notes of one corpus.
const MAX_NOTES: usize = 500;

/// Maximum characters of a note's text.
const MAX_CHARS: usize = 32_768;

/// A new note: a text, an answer of a thread, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewNote {
    title: Option<String>,
    text: Option<String>,
    from: Option<Origin>,
}

/// An answer of a thread, by its numbers from 0.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Origin {
    thread: String,
    turn: usize,
    answer: usize,
}

/// What changes; the rest remains.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangedNote {
    title: Option<String>,
    text: Option<String>,
}

fn now_ms() -> u64 {
    since_1970().as_millis() as u64
}

fn checked_text(text: Option<String>) -> Result<Option<String>> {
    let chars = text.as_ref().map_or(0, |text| text.chars().count());
    if chars > MAX_CHARS {
        return Err(ServerError::invalid(
            format!("a note has at most {MAX_CHARS} characters; this one has {chars}"),
            "text",
        ));
    }
    Ok(text.map(|text| text.trim().to_owned()))
}

/// Runs a task that changes the notes of a corpus, one at a time.
async fn with_notes<T: Send + 'static>(
    tenant: &Arc<Tenant>,
    corpus: String,
    work: impl FnOnce(&Corpus) -> Result<T> + Send + 'static,
) -> Result<T> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || {
        let corpus = tenant.open(&corpus)?;
        let _one = kept::lock(&corpus)?;
        work(&corpus)
    })
    .await
}

/// List the notes of a corpus, the latest first.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/notes", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn list(Extension(tenant): CurrentTenant, Path(corpus): Path<String>) -> Result<Json<Value>> {
    let notes = reading(&tenant, corpus, kept::all::<Note>).await?;
    Ok(Json(json!({ "notes": notes })))
}

/// Write a note, or save an answer of a thread as one.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/notes", tag = "Memory", params(("corpus" = String, Path)),
    request_body = NewNote, responses((status = 201, body = Note), (status = 404),
        (status = 409, description = "The server keeps no threads")))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    Body(new): Body<NewNote>,
) -> Result<(StatusCode, Json<Value>)> {
    if new.from.is_some() && !app.config.keep_threads {
        return Err(ServerError::NoThreads);
    }
    let text = checked_text(new.text)?.unwrap_or_default();
    if text.is_empty() && new.from.is_none() {
        return Err(ServerError::invalid("a note needs a `text`, or an answer (`from`)", "text"));
    }
    let (title, from, id) = (new.title, new.from, fresh_id(Note::KIND)?);
    let note = with_notes(&tenant, corpus, move |corpus| {
        let known = kept::all::<Note>(corpus)?.len();
        if known >= MAX_NOTES {
            let message = format!("the corpus has {known} notes; at most {MAX_NOTES} are kept: delete some");
            return Err(ServerError::refused(message));
        }
        let saved = from.map(|Origin { thread, turn, answer }| saved(corpus, &thread, turn, answer)).transpose()?;
        let first = saved.as_ref().map_or_else(|| text.lines().next().unwrap_or_default(), |saved| &saved.question);
        let title = title_of(title.as_deref().unwrap_or(first.trim_start_matches('#')));
        let now = now_ms();
        let note = Note { id, title, text, created: now, updated: now, saved };
        kept::write(corpus, &note)?;
        Ok(note)
    });
    Ok((StatusCode::CREATED, Json(json!(note.await?))))
}

/// A copy of an answer of a thread.
fn saved(corpus: &Corpus, thread: &str, turn: usize, answer: usize) -> Result<Saved> {
    answer_of(corpus, thread, turn, answer)?
        .map(|TurnAnswer { question, answer, asked, answered }| Saved {
            question,
            answer,
            asked,
            answered: Some(answered),
        })
        .ok_or_else(|| ServerError::invalid("the thread has no such turn or answer, counted from 0", "from"))
}

/// Change a note.
#[utoipa::path(patch, path = "/v1/corpora/{corpus}/notes/{note}", tag = "Memory",
    params(("corpus" = String, Path), ("note" = String, Path)), request_body = ChangedNote,
    responses((status = 200, body = Note), (status = 404)))]
async fn change(
    Extension(tenant): CurrentTenant,
    Path((corpus, id)): Path<(String, String)>,
    Body(changed): Body<ChangedNote>,
) -> Result<Json<Value>> {
    let text = checked_text(changed.text)?;
    let note = with_notes(&tenant, corpus, move |corpus| {
        let note: Note = kept::read(corpus, &id)?.0;
        let text = text.unwrap_or(note.text);
        if text.is_empty() && note.saved.is_none() {
            return Err(ServerError::invalid("a note needs a text; DELETE removes it", "text"));
        }
        let title = changed.title.as_deref().map_or(note.title, title_of);
        let note = Note { title, text, updated: now_ms(), ..note };
        kept::write(corpus, &note)?;
        Ok(note)
    });
    Ok(Json(json!(note.await?)))
}

/// Delete a note.
#[utoipa::path(delete, path = "/v1/corpora/{corpus}/notes/{note}", tag = "Memory",
    params(("corpus" = String, Path), ("note" = String, Path)), responses((status = 204), (status = 404)))]
async fn remove(Extension(tenant): CurrentTenant, Path((corpus, id)): Path<(String, String)>) -> Result<StatusCode> {
    with_notes(&tenant, corpus, move |corpus| kept::delete::<Note>(corpus, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
