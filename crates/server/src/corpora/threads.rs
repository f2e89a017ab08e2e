//! Threads: the questions and answers of a conversation about a corpus, kept in its folder until they are deleted.
//!
//! A thread is one JSON file beside the corpus, private to its owner and removed with the corpus. An answer may quote a
//! document, so deleting a document removes the turns that could know it. `--no-threads` keeps none.
#![allow(unused_qualifications, reason = "utoipa writes out the type of query parameters")]

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Corpus, Document};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::CurrentTenant;
use super::kept::{self, Record};
use crate::app::{App, fresh_id, since_1970};
use crate::blocking::run_blocking;
use crate::body::{Body, Params};
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create, remove_all)).routes(routes!(show, rename, remove))
}

/// Maximum threads of one corpus.
const MAX_THREADS: usize = 1000;

/// Maximum bytes of a thread; a longer conversation continues in another.
const MAX_BYTES: usize = 8 << 20;

/// Maximum characters of a title; a title made from a longer question ends with an ellipsis.
const MAX_TITLE_CHARS: usize = 120;

/// A conversation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct Thread {
    id: String,
    /// The first question unless it was renamed; empty before.
    title: String,
    /// Seconds since 1970.
    created: u64,
    updated: u64,
    turns: Vec<Turn>,
}

impl Record for Thread {
    const KIND: &'static str = "thread";
    const FOLDER: &'static str = "threads";

    fn id(&self) -> &str {
        &self.id
    }

    fn updated(&self) -> u64 {
        self.updated
    }
}

/// A question with its answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct Turn {
    question: String,
    created: u64,
    /// As `ask` returned them, the latest last: one for each time that the question was asked.
    answers: Vec<Value>,
}

/// Where an answer is appended.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub thread: String,
    /// The turn that gets a further answer; a new one if there is none.
    pub turn: Option<usize>,
}

/// The title of a thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewThread {
    /// The first question by default.
    title: Option<String>,
}

/// A new title.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Renamed {
    title: String,
}

/// How a thread is written.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ThreadQuery {
    /// `json` (by default) or `markdown`.
    format: Option<String>,
}

/// The threads of one tenant; a change reads and writes a whole file, so there is one at a time.
#[derive(Default)]
pub(crate) struct Threads(Mutex<()>);

impl Threads {
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if an answer to this question cannot be appended there.
    pub(super) fn check(&self, corpus: &Corpus, place: &Place, question: &str) -> Result<()> {
        let _one = self.lock();
        let (thread, bytes): (Thread, _) = kept::read(corpus, &place.thread)?;
        if bytes >= MAX_BYTES {
            let message =
                format!("the thread has {bytes} bytes; at most {MAX_BYTES} are continued: begin another thread");
            return Err(ServerError::invalid(message, "thread"));
        }
        match place.turn.map(|turn| thread.turns.get(turn)) {
            None => Ok(()),
            Some(Some(turn)) if turn.question == question => Ok(()),
            Some(Some(_)) => Err(ServerError::invalid("`turn` is a turn with another question", "turn")),
            Some(None) => {
                let message = format!("the thread has {} turns, counted from 0", thread.turns.len());
                Err(ServerError::invalid(message, "turn"))
            }
        }
    }

    /// The turns before a place, each with its latest answer.
    pub(super) fn before(&self, corpus: &Corpus, place: &Place) -> Result<Vec<memory::Turn>> {
        let _one = self.lock();
        let (thread, _): (Thread, _) = kept::read(corpus, &place.thread)?;
        let before = thread.turns.iter().take(place.turn.unwrap_or(usize::MAX));
        let text = |answer: &Value| answer["answer"].as_str().unwrap_or_default().to_owned();
        let turn = |turn: &Turn| memory::Turn {
            question: turn
                .answers
                .last()
                .and_then(|answer| answer["understood"].as_str())
                .unwrap_or(&turn.question)
                .to_owned(),
            answer: turn.answers.last().map(text).unwrap_or_default(),
        };
        Ok(before.map(turn).collect())
    }

    /// Appends an answer and returns the number of its turn.
    pub(super) fn append(&self, corpus: &Corpus, place: &Place, question: &str, answer: &Value) -> Result<usize> {
        let _one = self.lock();
        let (mut thread, _): (Thread, _) = kept::read(corpus, &place.thread)?;
        thread.updated = now();
        let number = place.turn.filter(|turn| *turn < thread.turns.len()).unwrap_or(thread.turns.len());
        if number == thread.turns.len() {
            let turn = Turn { question: question.to_owned(), created: now(), answers: Vec::new() };
            thread.turns.push(turn);
        }
        thread.turns[number].answers.push(answer.clone());
        if thread.title.is_empty() {
            thread.title = title_of(question);
        }
        kept::write(corpus, &thread)?;
        Ok(number)
    }

    /// Removes the turns that could know a document: those after it was added, and those that cite it.
    pub(super) fn forget(&self, corpus: &Corpus, document: &Document) -> Result<()> {
        let _one = self.lock();
        let added = u64::try_from(document.created_seconds).unwrap_or_default();
        for mut thread in kept::all::<Thread>(corpus)? {
            let before = thread.turns.len();
            thread
                .turns
                .retain(|turn| turn.created < added && !turn.answers.iter().any(|answer| cites(answer, document)));
            match thread.turns.len() {
                0 if before > 0 => kept::delete::<Thread>(corpus, &thread.id)?,
                now if now < before => kept::write(corpus, &thread)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A question of a thread with one of its answers and the time of the question; `None` if the thread has no such answer.
pub(super) fn answer_of(corpus: &Corpus, id: &str, turn: usize, answer: usize) -> Result<Option<(String, Value, u64)>> {
    let (thread, _): (Thread, _) = kept::read(corpus, id)?;
    let turn = thread.turns.get(turn);
    Ok(turn.and_then(|turn| Some((turn.question.clone(), turn.answers.get(answer)?.clone(), turn.created))))
}

pub(super) fn cites(answer: &Value, document: &Document) -> bool {
    let is_of = |citation: &Value| citation["path"] == document.path.as_str();
    answer["citations"].as_array().into_iter().flatten().any(is_of)
}

fn now() -> u64 {
    since_1970().as_secs()
}

pub(super) fn title_of(question: &str) -> String {
    let line = question.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_TITLE_CHARS {
        return line;
    }
    let start: String = line.chars().take(MAX_TITLE_CHARS - 1).collect();
    format!("{start}…")
}

fn checked_title(title: &str) -> Result<String> {
    let title = title.trim();
    let chars = title.chars().count();
    if (1..=MAX_TITLE_CHARS).contains(&chars) && !title.chars().any(char::is_control) {
        return Ok(title.to_owned());
    }
    let message = format!("a title has 1 to {MAX_TITLE_CHARS} characters on one line; this one has {chars}");
    Err(ServerError::invalid(message, "title"))
}

/// Runs a task on the threads of a corpus, which is not removed meanwhile.
async fn with_corpus<T: Send + 'static>(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    work: impl FnOnce(&Corpus, &Threads) -> Result<T> + Send + 'static,
) -> Result<T> {
    if !app.config.keep_threads {
        return Err(ServerError::NoThreads);
    }
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.corpora.open(&corpus)?, &tenant.threads)).await
}

/// List the threads of a corpus, the latest first; `kept` is false where the server keeps none.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/threads", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn list(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
) -> Result<Json<Value>> {
    if !app.config.keep_threads {
        return Ok(Json(json!({ "kept": false, "threads": [] })));
    }
    let threads = with_corpus(&app, &tenant, corpus, |corpus, threads| {
        let _one = threads.lock();
        kept::all::<Thread>(corpus)
    });
    let line = |Thread { id, title, created, updated, turns }| json!({ "id": id, "title": title, "created": created, "updated": updated, "turns": turns.len() });
    Ok(Json(json!({ "kept": true, "threads": threads.await?.into_iter().map(line).collect::<Vec<_>>() })))
}

/// Begin a thread. `POST /v1/corpora/{corpus}/ask` with its id appends to it.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/threads", tag = "Memory", params(("corpus" = String, Path)),
    request_body = NewThread, responses((status = 201, body = Thread), (status = 404),
        (status = 409, description = "The server keeps no threads")))]
async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    Body(new): Body<NewThread>,
) -> Result<(StatusCode, Json<Value>)> {
    let title = new.title.as_deref().map(checked_title).transpose()?.unwrap_or_default();
    let thread = Thread { id: fresh_id("thread")?, title, created: now(), updated: now(), turns: Vec::new() };
    let created = with_corpus(&app, &tenant, corpus, move |corpus, threads| {
        let _one = threads.lock();
        let known = kept::all::<Thread>(corpus)?.len();
        if known >= MAX_THREADS {
            let message = format!("the corpus has {known} threads; at most {MAX_THREADS} are kept: delete some");
            return Err(ServerError::Invalid { message, param: None });
        }
        kept::write(corpus, &thread)?;
        Ok(thread)
    });
    Ok((StatusCode::CREATED, Json(json!(created.await?))))
}

/// Delete all threads of a corpus.
#[utoipa::path(delete, path = "/v1/corpora/{corpus}/threads", tag = "Memory", params(("corpus" = String, Path)),
    responses((status = 204), (status = 404), (status = 409, description = "The server keeps no threads")))]
async fn remove_all(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
) -> Result<StatusCode> {
    with_corpus(&app, &tenant, corpus, |corpus, threads| {
        let _one = threads.lock();
        kept::delete_all::<Thread>(corpus)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show a thread, or export it as Markdown.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/threads/{thread}", tag = "Memory",
    params(("corpus" = String, Path), ("thread" = String, Path), ThreadQuery),
    responses((status = 200, content((Thread = "application/json"), (String = "text/markdown"))), (status = 404)))]
async fn show(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((corpus, id)): Path<(String, String)>,
    Params(query): Params<ThreadQuery>,
) -> Result<Response> {
    let as_markdown = match query.format.as_deref() {
        None | Some("json") => false,
        Some("markdown") => true,
        Some(other) => return Err(ServerError::invalid(format!("`{other}` is not one of json, markdown"), "format")),
    };
    let thread = with_corpus(&app, &tenant, corpus, move |corpus, threads| {
        let _one = threads.lock();
        Ok(kept::read::<Thread>(corpus, &id)?.0)
    });
    let thread = thread.await?;
    if as_markdown {
        return Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], markdown(&thread)).into_response());
    }
    Ok(Json(thread).into_response())
}

/// Rename a thread.
#[utoipa::path(patch, path = "/v1/corpora/{corpus}/threads/{thread}", tag = "Memory",
    params(("corpus" = String, Path), ("thread" = String, Path)), request_body = Renamed,
    responses((status = 200, body = Thread), (status = 404)))]
async fn rename(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((corpus, id)): Path<(String, String)>,
    Body(renamed): Body<Renamed>,
) -> Result<Json<Value>> {
    let title = checked_title(&renamed.title)?;
    let thread = with_corpus(&app, &tenant, corpus, move |corpus, threads| {
        let _one = threads.lock();
        let thread = Thread { title, ..kept::read(corpus, &id)?.0 };
        kept::write(corpus, &thread)?;
        Ok(thread)
    });
    Ok(Json(json!(thread.await?)))
}

/// Delete a thread.
#[utoipa::path(delete, path = "/v1/corpora/{corpus}/threads/{thread}", tag = "Memory",
    params(("corpus" = String, Path), ("thread" = String, Path)), responses((status = 204), (status = 404)))]
async fn remove(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path((corpus, id)): Path<(String, String)>,
) -> Result<StatusCode> {
    with_corpus(&app, &tenant, corpus, move |corpus, threads| {
        let _one = threads.lock();
        kept::delete::<Thread>(corpus, &id)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A thread for reading: every answer with its verdicts and sources.
fn markdown(thread: &Thread) -> String {
    let mut text = format!("# {}\n", thread.title);
    for turn in &thread.turns {
        let _ = write!(text, "\n## {}\n", turn.question);
        for answer in &turn.answers {
            let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let _ = write!(text, "\n{}\n\n*{}*\n", string(&answer["answer"]), string(&answer["method"]));
            for statement in answer["statements"].as_array().into_iter().flatten() {
                let verdict = string(&statement["verdict"]);
                if verdict != "supported" {
                    let _ = write!(text, "\n* {verdict}: {}\n", string(&statement["text"]));
                }
            }
            for (number, citation) in (1..).zip(answer["citations"].as_array().into_iter().flatten()) {
                let (path, quote) = (string(&citation["path"]), string(&citation["quote"]));
                let _ = write!(text, "\n[{number}] {path}, characters {} to {}:\n", citation["start"], citation["end"]);
                quote.lines().for_each(|line| text.extend(["> ", line, "\n"]));
            }
        }
    }
    text
}
