//! Running batches: each request goes through the same routes as one of a client.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::{Extension, Router};
use calls::Priority;
use futures_util::{StreamExt, stream};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::quoted::Quoted;
use super::super::stored_files::StoredFile;
use super::kept::{Batches, Counts, Status};
use super::lines::{self, FAILURES, Line, REPLIES};
use crate::app::{App, PRIORITY};
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::fresh::since_1970;
use crate::tenant::Tenant;

/// Runs a task on the batches of a tenant.
pub(super) async fn with<T: Send + 'static>(
    tenant: &Arc<Tenant>,
    work: impl FnOnce(&Batches) -> Result<T> + Send + 'static,
) -> Result<T> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.batches)).await
}

/// Requests of a batch that are answered at once.
const CONCURRENT: usize = 4;

/// The pause between two looks whether a batch that waits was cancelled or may continue.
const PAUSE: Duration = Duration::from_secs(1);

/// Resumes the batches of a tenant that the end of a previous server interrupted.
pub(crate) fn resume(app: &App, tenant: &Arc<Tenant>) {
    match tenant.batches.records.all() {
        Ok(mut batches) => {
            batches.retain(|batch| !batch.status.is_end());
            batches.sort_by_key(|batch| batch.created);
            batches.into_iter().for_each(|batch| start(app, tenant, batch.id));
        }
        Err(error) => tracing::warn!(%error, "cannot resume the batches of a previous server"),
    }
}

/// The pause before a batch whose replies could not be written resumes.
const DISK_PAUSE: Duration = Duration::from_secs(10);

/// Runs a batch in the background. While the disk is full or cannot be written to, it waits.
pub(super) fn start(app: &App, tenant: &Arc<Tenant>, id: String) {
    let (app, tenant) = (Arc::clone(app), Arc::clone(tenant));
    tokio::spawn(async move {
        let _turn = tenant.batches.turn.lock().await;
        let error = loop {
            match alone(&app, &tenant, &id).await {
                Ok(()) => return,
                Err(error) if error.is_of_disk() && !is_stopping(&app) => {
                    tracing::warn!(%error, "the batch {id} waits");
                    sleep(DISK_PAUSE).await;
                }
                Err(error) => break error,
            }
        };
        let owner = Arc::clone(&tenant);
        let failed = run_blocking(move || end(&owner, &id, Some(error.to_string())));
        if let Err(error) = failed.await {
            tracing::error!(%error, "cannot keep the end of a batch");
        }
    });
}

/// Runs a batch when no other server on this data folder runs one.
async fn alone(app: &App, tenant: &Arc<Tenant>, id: &str) -> Result<()> {
    let guard = loop {
        if let Some(guard) = with(tenant, Batches::try_alone).await? {
            break guard;
        }
        if is_stopping(app) {
            return Ok(());
        }
        sleep(PAUSE).await;
    };
    let name = id.to_owned();
    // Another server may have ended it.
    if with(tenant, move |batches| Ok(batches.records.read(&name)?.status.is_end())).await? {
        return Ok(());
    }
    let ran = run(app, tenant, id).await;
    drop(guard);
    ran
}

/// Answers the requests that have no reply yet, and ends the batch unless the server is stopping.
async fn run(app: &App, tenant: &Arc<Tenant>, id: &str) -> Result<()> {
    let (owner, name) = (Arc::clone(tenant), id.to_owned());
    let most = app.config.max_body_bytes;
    let Some((endpoint, left)) = run_blocking(move || begin(&owner, &name, most)).await? else { return Ok(()) };
    let routes = super::super::routes(&app.config).split_for_parts().0;
    let routes: Router = routes
        .layer(DefaultBodyLimit::max(app.config.max_body_bytes))
        .layer(Extension(Arc::clone(tenant)))
        .with_state(Arc::clone(app));
    let service = TowerToHyperService::new(routes);
    let mut requests = stream::iter(left)
        .map(|line| {
            let (service, endpoint, line) = (service.clone(), endpoint.as_str(), Arc::new(line));
            async move {
                let mut pauses = 0;
                loop {
                    let is_cancelled = with(tenant, {
                        let id = id.to_owned();
                        move |batches| Ok(batches.records.read(&id)?.status == Status::Cancelling)
                    });
                    if is_stopping(app) || is_cancelled.await? {
                        return Ok(());
                    }
                    if pauses > 0 {
                        pauses -= 1;
                        sleep(PAUSE).await;
                        continue;
                    }
                    let outcome = match PRIORITY.scope(Priority::Bulk, answer(app, &service, endpoint, &line)).await? {
                        Answer::Outcome(outcome) => outcome,
                        Answer::Later { pause_seconds } => {
                            pauses = pause_seconds;
                            continue;
                        }
                        Answer::Stopping => return Ok(()),
                    };
                    let (owner, name, line) = (Arc::clone(tenant), id.to_owned(), Arc::clone(&line));
                    if run_blocking(move || record(&owner, &name, &line, outcome)).await? {
                        return Ok::<_, ServerError>(());
                    }
                }
            }
        })
        .buffer_unordered(CONCURRENT);
    while let Some(ended) = requests.next().await {
        ended?;
    }
    drop(requests);
    if is_stopping(app) {
        return Ok(());
    }
    let (owner, name) = (Arc::clone(tenant), id.to_owned());
    run_blocking(move || end(&owner, &name, None)).await
}

fn is_stopping(app: &App) -> bool {
    app.stopping.load(Ordering::Relaxed)
}

/// The endpoint of a batch, and the lines of at most `max_line_bytes` that have no reply yet; none if it was cancelled
/// before.
fn begin(tenant: &Tenant, id: &str, max_line_bytes: usize) -> Result<Option<(String, Vec<Line>)>> {
    let batches = &tenant.batches;
    let batch = batches.records.read(id)?;
    let input = tenant.files.content(&batch.input)?;
    let unusable = |reason| ServerError::invalid(reason, "input_file_id");
    let mut left = lines::read(&input, &batch.endpoint, max_line_bytes).map_err(unusable)?;
    let total = left.len();
    let (completed, failed) = {
        let _one = batches.records.lock()?;
        (lines::answered(&place(tenant, id, REPLIES)?)?, lines::answered(&place(tenant, id, FAILURES)?)?)
    };
    left.retain(|line| !completed.contains(&line.number) && !failed.contains(&line.number));
    let was_cancelled = batches.change(id, |batch| {
        batch.counts = Counts { total, completed: completed.len(), failed: failed.len() };
        if batch.status == Status::Validating {
            batch.set(Status::InProgress);
        }
        batch.status.is_end()
    })?;
    Ok((!was_cancelled).then_some((batch.endpoint, left)))
}

/// What became of a request: its reply, or why it is not one.
type Outcome = std::result::Result<Reply, String>;

struct Reply {
    status: StatusCode,
    body: Value,
    /// What it may quote.
    quoted: Option<Quoted>,
}

/// What the server says to a request.
enum Answer {
    Outcome(Outcome),
    /// It was refused for the moment.
    Later {
        pause_seconds: u64,
    },
    Stopping,
}

/// Sends a request once.
async fn answer(app: &App, service: &TowerToHyperService<Router>, endpoint: &str, line: &Line) -> Result<Answer> {
    let body = match &line.body {
        Ok(body) => body.clone(),
        Err(reason) => return Ok(Answer::Outcome(Err(reason.clone()))),
    };
    let request = Request::post(endpoint)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .map_err(|error| ServerError::Worker(error.to_string()))?;
    let response = match service.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let (status, quoted) = (response.status(), response.extensions().get::<Quoted>().cloned());
    if is_stopping(app) && !status.is_success() {
        return Ok(Answer::Stopping);
    }
    let pause_seconds = pause_seconds(response.headers());
    let unusable = |error: axum::Error| ServerError::Worker(error.to_string());
    let bytes = to_bytes(response.into_body(), usize::MAX).await.map_err(unusable)?;
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    if is_temporary(&body) {
        return Ok(Answer::Later { pause_seconds });
    }
    Ok(Answer::Outcome(Ok(Reply { status, body, quoted })))
}

/// Whether a refused request may be answered when it is sent again.
fn is_temporary(body: &Value) -> bool {
    let code = body["error"]["code"].as_str();
    matches!(code, Some("overloaded" | "rate_limit_exceeded" | "database" | "conversation_locked"))
}

/// The seconds after which a refused request may be sent again.
fn pause_seconds(headers: &HeaderMap) -> u64 {
    let told = headers.get(header::RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    told.unwrap_or(1).max(1)
}

/// Keeps what became of a request; false if a text that the reply may quote was removed or replaced meanwhile, so that the
/// request is sent again.
fn record(tenant: &Tenant, id: &str, line: &Line, outcome: Outcome) -> Result<bool> {
    let (is_reply, mut written, quoted) = match outcome {
        Ok(Reply { status, body, quoted }) => {
            let response =
                json!({ "status_code": status.as_u16(), "request_id": format!("{id}-{}", line.number), "body": body });
            (status.is_success(), lines::reply(id, line, response, Value::Null), quoted)
        }
        Err(reason) => {
            let error = json!({ "code": "invalid_line", "message": format!("line {}: {reason}", line.number) });
            (false, lines::reply(id, line, Value::Null, error), None)
        }
    };
    let quoted = quoted.filter(|quoted| !quoted.corpora.is_empty());
    if let Some(quoted) = &quoted {
        written["corpora"] = json!(quoted.corpora);
        written["answered_at"] = since_1970().as_secs().into();
    }
    let path = tenant.batches.records.path(id, if is_reply { REPLIES } else { FAILURES })?;
    // The lock of the change is that of forgetting too.
    tenant.batches.change(id, |batch| -> Result<bool> {
        if let Some(quoted) = quoted
            && !quoted.is_current(tenant)?
        {
            return Ok(false);
        }
        lines::append(&path, &written)?;
        *(if is_reply { &mut batch.counts.completed } else { &mut batch.counts.failed }) += 1;
        Ok(true)
    })?
}

/// Ends a batch, which has failed if there is a reason: moves the replies to the files of the holder.
fn end(tenant: &Tenant, id: &str, failure: Option<String>) -> Result<()> {
    tenant.batches.change(id, |batch| {
        if failure.is_none() && batch.status == Status::InProgress {
            batch.set(Status::Finalizing);
        }
    })?;
    let (output, errors) = {
        let _one = tenant.batches.records.lock()?;
        (keep(tenant, id, REPLIES)?, keep(tenant, id, FAILURES)?)
    };
    tenant.batches.change(id, |batch| {
        (batch.output, batch.errors) = (output.or(batch.output.take()), errors.or(batch.errors.take()));
        match (batch.status, failure) {
            // A client cancelled it before its turn.
            (Status::Cancelled, _) => {}
            (Status::Cancelling, _) => batch.set(Status::Cancelled),
            (_, None) => batch.set(Status::Completed),
            (_, failure) => {
                batch.failure = failure;
                batch.set(Status::Failed);
            }
        }
    })
}

/// Where the replies of a batch are: beside it, or among the files if the server ended after they were moved.
fn place(tenant: &Tenant, id: &str, extension: &str) -> Result<PathBuf> {
    let beside = tenant.batches.records.path(id, extension)?;
    match if beside.exists() { None } else { kept(tenant, id, extension)? } {
        Some(file) => Ok(tenant.files.find(&file.id)?.1),
        None => Ok(beside),
    }
}

/// The file to which the replies of a batch were moved.
fn kept(tenant: &Tenant, id: &str, extension: &str) -> Result<Option<StoredFile>> {
    let name = file_name(id, extension);
    Ok(tenant.files.all()?.into_iter().find(|file| file.is_written() && file.name == name))
}

fn file_name(id: &str, extension: &str) -> String {
    format!("{id}_{}.jsonl", if extension == REPLIES { "output" } else { "error" })
}

/// Moves a finished file of replies to the files of its holder; an empty one is deleted.
fn keep(tenant: &Tenant, id: &str, extension: &str) -> Result<Option<String>> {
    let place = tenant.batches.records.path(id, extension)?;
    match fs::metadata(&place) {
        Ok(about) if about.len() > 0 => Ok(Some(tenant.files.keep_written(file_name(id, extension), place)?.id)),
        Ok(_) => {
            fs::remove_file(place)?;
            Ok(None)
        }
        Err(_) => Ok(kept(tenant, id, extension)?.map(|file| file.id)),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use axum::http::{HeaderMap, HeaderValue, header};
    use calls::CallError;

    use super::{is_temporary, pause_seconds};
    use crate::error::ServerError;

    #[test]
    fn a_request_that_was_refused_for_the_moment_is_sent_again() {
        let thread = ServerError::Thread(io::Error::from(io::ErrorKind::WouldBlock));
        for (error, temporary) in [
            (ServerError::Busy { running: 1 }, true),
            (thread, true),
            (ServerError::RateLimited { pause_seconds: 1 }, true),
            (ServerError::ConversationLocked("conv-1".into()), true),
            (ServerError::Call(CallError::Closed), false),
            (ServerError::NoThreads, false),
            (ServerError::UnknownModel("none".into()), false),
        ] {
            assert_eq!(is_temporary(&error.body()), temporary, "{error}");
        }
    }

    #[test]
    fn a_refused_request_is_sent_again_after_the_pause_that_is_asked_for() {
        let check = |value: Option<&'static str>, want: u64| {
            let header = |value| (header::RETRY_AFTER, HeaderValue::from_static(value));
            let headers: HeaderMap = value.map(header).into_iter().collect();
            assert_eq!(pause_seconds(&headers), want, "{value:?}");
        };
        check(Some("17"), 17);
        check(Some("0"), 1);
        check(Some("Fri, 31 Dec 1999 23:59:59 GMT"), 1);
        check(None, 1);
    }
}
