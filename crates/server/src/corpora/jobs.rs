//! Jobs: documents that are being remembered. One at a time for each corpus; every step is durable, so a job that was
//! cancelled or failed goes on where it stopped.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use calls::{Lane, WorkflowId};
use memory::{Method, Progress, Session, Settings, Trace};
use serde::Serialize;
use serde_json::{Value, json};
use sources::{ReadOptions, Source};
use store::{Change, DocId};
use tempfile::TempDir;
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Whose, usual};
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::metrics::Quantity;
use crate::stream::{Framing, respond};
use crate::tenant::Tenant;
use crate::work::on_a_thread;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, cancel))
        .routes(routes!(events))
        .routes(routes!(resume))
}

/// The jobs of one tenant, the latest last.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<Vec<Arc<Job>>>);

/// Jobs that are remembered after their end.
const MOST_JOBS: usize = 256;

/// A file to remember.
pub(super) struct Upload {
    /// What it will be known by.
    pub name: String,
    /// Where it lies meanwhile.
    pub path: PathBuf,
}

/// One job.
pub(crate) struct Job {
    id: String,
    corpus: String,
    method: Method,
    files: Vec<Upload>,
    /// Where the files lie until they are remembered.
    folder: Mutex<Option<TempDir>>,
    state: watch::Sender<JobState>,
    cancelled: watch::Sender<bool>,
}

/// How far a job has come.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct JobState {
    status: Status,
    progress: Option<Step>,
    added: Vec<Added>,
    /// Files that could not be read.
    unread: Vec<Unread>,
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Waiting,
    Running,
    Done,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    unit: &'static str,
    done: usize,
    of: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Added {
    name: String,
    document: DocId,
    change: &'static str,
    pages: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Unread {
    name: String,
    reason: String,
}

impl Job {
    pub(super) fn new(
        app: &App,
        corpus: String,
        method: Method,
        files: Vec<Upload>,
        folder: Option<TempDir>,
    ) -> Arc<Job> {
        let state =
            JobState { status: Status::Waiting, progress: None, added: Vec::new(), unread: Vec::new(), error: None };
        let (state, cancelled) = (watch::Sender::new(state), watch::Sender::new(false));
        Arc::new(Job { id: app.fresh_id("job"), corpus, method, files, folder: Mutex::new(folder), state, cancelled })
    }

    /// The job as clients see it.
    pub(crate) fn shown(&self) -> Value {
        self.shown_as(&self.state.borrow())
    }

    fn shown_as(&self, state: &JobState) -> Value {
        let mut shown = json!({ "id": self.id, "corpus": self.corpus, "method": self.method });
        if let (Some(shown), Ok(Value::Object(state))) = (shown.as_object_mut(), serde_json::to_value(state)) {
            shown.extend(state);
        }
        shown
    }

    /// Waits for the end; true if all went well.
    pub(crate) async fn ended(&self) -> bool {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| state.status.is_end()).await;
        ended.is_ok_and(|state| state.status == Status::Done)
    }

    fn change(&self, change: impl FnOnce(&mut JobState)) {
        self.state.send_modify(change);
    }
}

impl Status {
    fn is_end(self) -> bool {
        matches!(self, Status::Done | Status::Failed | Status::Cancelled)
    }
}

impl Jobs {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, job: Arc<Job>) {
        let mut jobs = self.lock();
        jobs.retain(|known| known.id != job.id);
        if jobs.len() >= MOST_JOBS
            && let Some(ended) = jobs.iter().position(|job| job.state.borrow().status.is_end())
        {
            jobs.remove(ended);
        }
        jobs.push(job);
    }

    fn get(&self, id: &str) -> Result<Arc<Job>> {
        let job = self.lock().iter().find(|job| job.id == id).cloned();
        job.ok_or_else(|| ServerError::NotFound(format!("job {id}")))
    }

    /// Stops all of them.
    pub(crate) fn stop(&self) {
        self.lock().iter().for_each(|job| {
            job.cancelled.send_replace(true);
        });
    }

    /// Waits until all of them have ended.
    pub(crate) async fn drained(&self) {
        let jobs = self.lock().clone();
        for job in jobs {
            job.ended().await;
        }
    }
}

/// Runs a job beside everything else.
///
/// # Errors
/// [`ServerError::Busy`] if too many are waiting.
pub(super) fn start(app: &App, tenant: &Arc<Tenant>, job: &Arc<Job>) -> Result<()> {
    let waiting = tenant.jobs.lock().iter().filter(|job| !job.state.borrow().status.is_end()).count();
    if waiting >= MOST_JOBS {
        return Err(ServerError::Busy { running: waiting });
    }
    job.cancelled.send_replace(false);
    job.change(|state| (state.status, state.error) = (Status::Waiting, None));
    tenant.jobs.put(Arc::clone(job));
    let (app, tenant, job) = (Arc::clone(app), Arc::clone(tenant), Arc::clone(job));
    tokio::spawn(async move {
        app.metrics.add(Quantity::Jobs, String::new(), 1.0);
        let mut cancelled = job.cancelled.subscribe();
        let work = {
            let (app, tenant, job) = (Arc::clone(&app), Arc::clone(&tenant), Arc::clone(&job));
            move || async move { run(&app, &tenant, &job).await }
        };
        let (status, error) = tokio::select! {
            _ = cancelled.wait_for(|cancelled| *cancelled) => (Status::Cancelled, None),
            outcome = on_a_thread(work) => match outcome {
                Ok(()) => (Status::Done, None),
                Err(error) => (Status::Failed, Some(error.to_string())),
            },
        };
        app.metrics.add(Quantity::Jobs, String::new(), -1.0);
        if status == Status::Done {
            drop(job.folder.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        job.change(|state| (state.status, state.error) = (status, error));
    });
    Ok(())
}

/// Adds the files and does what the method needs.
async fn run(app: &App, tenant: &Tenant, job: &Job) -> Result<()> {
    let _alone = tenant.changing_later(&job.corpus).await;
    job.change(|state| {
        state.status = Status::Running;
        state.added.clear();
        state.unread.clear();
    });
    let mut writer = tenant.corpora.open_writer(&job.corpus)?;
    let trace = Trace::off();
    let session = Session {
        caller: &*app.caller,
        embedder: &*app.embedder,
        settings: Settings { method: job.method, ..usual() },
        trace: &trace,
        workflow: WorkflowId(app.fresh_seed()),
        lane: Lane::Bulk,
        on_text: None,
    };
    for upload in &job.files {
        match read(upload, app) {
            Ok(sources) => {
                for source in sources {
                    let added = memory::add(&source, &mut writer, &session)?;
                    let line = Added {
                        name: source.path,
                        document: added.document,
                        change: named(added.change),
                        pages: added.pages,
                    };
                    job.change(|state| state.added.push(line));
                }
            }
            Err(reason) => job.change(|state| state.unread.push(Unread { name: upload.name.clone(), reason })),
        }
    }
    if !job.files.is_empty() && job.state.borrow().added.is_empty() {
        return Err(ServerError::Invalid { message: "none of the files could be read".into(), param: None });
    }
    let report = |Progress { step, unit, done, of }| {
        job.change(|state| state.progress = Some(Step { name: step, unit, done, of }));
    };
    Ok(memory::prepare(&mut writer, &session, &mut { report }).await?)
}

/// Reads an upload; its documents bear its name, not that of the place where it lies.
fn read(upload: &Upload, app: &App) -> std::result::Result<Vec<Source>, String> {
    let options = ReadOptions {
        pdf_child: app.config.pdf_child.clone(),
        max_file_bytes: app.config.max_upload_bytes as u64,
        ..ReadOptions::default()
    };
    let mut sources = sources::read(&upload.path, &options).map_err(|error| error.cause.to_string())?;
    let place = upload.path.to_string_lossy();
    for source in &mut sources {
        let rest = source.path.strip_prefix(&*place).unwrap_or_default();
        source.path = format!("{}{rest}", upload.name);
    }
    Ok(sources)
}

fn named(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Replaced => "replaced",
        Change::Recut => "cut anew",
        Change::Unchanged => "unchanged",
    }
}

/// List jobs, the latest last.
#[utoipa::path(get, path = "/v1/jobs", tag = "Memory", responses((status = 200, body = Value)))]
async fn list(Extension(tenant): Whose) -> Json<Value> {
    let jobs: Vec<Value> = tenant.jobs.lock().iter().map(|job| job.shown()).collect();
    Json(json!({ "jobs": jobs }))
}

/// Show a job.
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn show(Extension(tenant): Whose, Path(job): Path<String>) -> Result<Json<Value>> {
    Ok(Json(tenant.jobs.get(&job)?.shown()))
}

/// Follow a job: an event `job` whenever it has come further, until it has ended.
#[utoipa::path(get, path = "/v1/jobs/{job}/events", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404)))]
async fn events(Extension(tenant): Whose, Path(job): Path<String>) -> Result<Response> {
    let job = tenant.jobs.get(&job)?;
    respond(Framing::Events, |sink| async move {
        let mut states = job.state.subscribe();
        loop {
            let state = states.borrow_and_update().clone();
            sink.event("job", &job.shown_as(&state));
            if state.status.is_end() || states.changed().await.is_err() {
                return Ok(());
            }
        }
    })
    .await
}

/// Cancel a job; what it has finished stays.
#[utoipa::path(delete, path = "/v1/jobs/{job}", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn cancel(Extension(tenant): Whose, Path(job): Path<String>) -> Result<Json<Value>> {
    let job = tenant.jobs.get(&job)?;
    job.cancelled.send_replace(true);
    job.ended().await;
    Ok(Json(job.shown()))
}

/// Take up a job that was cancelled or failed.
#[utoipa::path(post, path = "/v1/jobs/{job}/resume", tag = "Memory", params(("job" = String, Path)),
    responses((status = 202, body = Value), (status = 404), (status = 409, description = "It is running, or done")))]
async fn resume(
    State(app): State<App>,
    Extension(tenant): Whose,
    Path(job): Path<String>,
) -> Result<(StatusCode, Json<Value>)> {
    let job = tenant.jobs.get(&job)?;
    let status = job.state.borrow().status;
    if !matches!(status, Status::Cancelled | Status::Failed) {
        return Err(ServerError::Conflict(format!("job {} has not been stopped", job.id)));
    }
    start(&app, &tenant, &job)?;
    Ok((StatusCode::ACCEPTED, Json(job.shown())))
}
