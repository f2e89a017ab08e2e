//! Ingest jobs: one at a time per corpus. Every step is durable, so a cancelled or failed job resumes where it stopped.
//! Its files and a journal are in the data folder: the next server lists it, and resumes it if the end of the server
//! interrupted it. Deleting a finished job or its corpus deletes its files.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use calls::{Priority, WorkflowId};
use memory::{Method, Progress, Session, Settings, Trace};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use sources::{Opened, ReadOptions};
use store::{Change, DocId, private};
use tempfile::TempDir;
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{CurrentTenant, default_settings};
use crate::app::{App, fresh_id, random, since_1970};
use crate::blocking::{run_blocking, run_on_thread};
use crate::body::parse;
use crate::error::{Result, ServerError};
use crate::metrics::Quantity;
use crate::stream::{Framing, respond};
use crate::tenant::Tenant;
use crate::uploads::JOURNAL;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, cancel))
        .routes(routes!(events))
        .routes(routes!(resume))
}

/// The jobs of one tenant.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<JobList>);

#[derive(Default)]
struct JobList {
    /// In order of creation.
    jobs: Vec<Arc<Job>>,
    /// True once no further jobs may start.
    stopped: bool,
}

/// Finished jobs that are listed.
const MAX_JOBS: usize = 256;

/// A file to ingest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Upload {
    /// The name of its document.
    pub name: String,
    /// Its file name in the job's folder.
    pub file: String,
}

/// The journal of a job, stored beside its files for the next server.
#[derive(Serialize, Deserialize)]
struct Journal {
    id: String,
    corpus: String,
    #[serde(deserialize_with = "method_by_name")]
    method: &'static dyn Method,
    files: Vec<Upload>,
    /// Uploaded files that cannot become documents.
    #[serde(default)]
    refused: Vec<FailedFile>,
    /// Creation time in milliseconds since 1970.
    #[serde(default)]
    begun: u64,
    /// The error of a failed job.
    error: Option<String>,
    /// True if a client cancelled it; a job neither failed nor cancelled was interrupted.
    #[serde(default)]
    cancelled: bool,
    /// How often servers have resumed it after a crash.
    #[serde(default)]
    interruptions: u32,
}

/// A job interrupted this often may itself crash the server: it is not resumed automatically any more.
const MAX_INTERRUPTIONS: u32 = 3;

fn method_by_name<'de, D: Deserializer<'de>>(method: D) -> std::result::Result<&'static dyn Method, D::Error> {
    String::deserialize(method)?.parse().map_err(D::Error::custom)
}

/// One job.
pub(crate) struct Job {
    id: String,
    corpus: String,
    method: &'static dyn Method,
    files: Vec<Upload>,
    refused: Vec<FailedFile>,
    /// Folder of files and journal until the files are ingested.
    folder: PathBuf,
    state: watch::Sender<JobState>,
    cancelled: watch::Sender<bool>,
    begun: u64,
    interruptions: AtomicU32,
    /// True if the previous server did not shut down cleanly.
    interrupted: bool,
    /// True if it was deleted: its files are removed when it has ended.
    deleted: AtomicBool,
}

/// The progress of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct JobState {
    status: Status,
    progress: Option<StepProgress>,
    added: Vec<Added>,
    /// Files that could not be read.
    unread: Vec<FailedFile>,
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
struct StepProgress {
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

/// A file that could not be read, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FailedFile {
    pub name: String,
    pub reason: String,
}

impl Job {
    /// A new job that has not started; its journal is written.
    pub(super) async fn new(
        corpus: String,
        method: &'static dyn Method,
        files: Vec<Upload>,
        refused: Vec<FailedFile>,
        folder: TempDir,
    ) -> Result<Job> {
        let id = fresh_id("job")?;
        let begun = since_1970().as_millis() as u64;
        let (error, cancelled, interruptions) = (None, false, 0);
        let journal = Journal { id, corpus, method, files, refused, begun, error, cancelled, interruptions };
        run_blocking(move || {
            let job = Job::of(journal, folder.path().to_owned());
            job.write(None, false)?;
            // From here on the job owns the folder.
            drop(folder.keep());
            Ok(job)
        })
        .await
    }

    /// A job that is not running.
    fn of(journal: Journal, folder: PathBuf) -> Job {
        let Journal { id, corpus, method, files, refused, begun, error, cancelled, interruptions } = journal;
        let interrupted = error.is_none() && !cancelled;
        let status = if error.is_some() { Status::Failed } else { Status::Cancelled };
        let state = JobState { status, progress: None, added: Vec::new(), unread: refused.clone(), error };
        Job {
            id,
            corpus,
            method,
            files,
            refused,
            folder,
            state: watch::Sender::new(state),
            cancelled: watch::Sender::new(false),
            begun,
            interruptions: AtomicU32::new(interruptions),
            interrupted,
            deleted: AtomicBool::new(false),
        }
    }

    /// Writes the journal atomically.
    fn write(&self, error: Option<String>, cancelled: bool) -> Result<()> {
        let (id, corpus) = (self.id.clone(), self.corpus.clone());
        let (files, refused) = (self.files.clone(), self.refused.clone());
        let interruptions = self.interruptions.load(Ordering::Relaxed);
        let (method, begun) = (self.method, self.begun);
        let journal = Journal { id, corpus, method, files, refused, begun, error, cancelled, interruptions };
        let new = self.folder.join("job.new");
        private::write(&new, json!(journal).to_string())?;
        Ok(fs::rename(new, self.folder.join(JOURNAL))?)
    }

    /// Removes files and journal of a job that is done or cannot be resumed.
    fn clear(&self) {
        if let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot delete an upload");
        }
    }

    /// The job in the API's JSON format.
    pub(crate) fn to_json(&self) -> Value {
        self.to_json_with(&self.state.borrow())
    }

    fn to_json_with(&self, state: &JobState) -> Value {
        let files: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let mut shown = json!({ "id": self.id, "corpus": self.corpus, "method": self.method, "files": files });
        if let (Some(shown), Ok(Value::Object(state))) = (shown.as_object_mut(), serde_json::to_value(state)) {
            shown.extend(state);
        }
        shown
    }

    /// Waits for the end; true if the job succeeded.
    pub(crate) async fn ended(&self) -> bool {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| state.status.is_end()).await;
        ended.is_ok_and(|state| state.status == Status::Done)
    }

    /// Waits for the end, and reports every state that it sees, the last one always.
    ///
    /// # Errors
    /// Why the job was not completed.
    pub(crate) async fn follow(&self, report: impl Fn(&Value)) -> std::result::Result<(), String> {
        let mut states = self.state.subscribe();
        loop {
            let state = states.borrow_and_update().clone();
            let mut event =
                json!({ "event": "prepare", "job": self.id, "method": self.method, "status": state.status });
            if let (Some(event), Ok(Value::Object(progress))) =
                (event.as_object_mut(), serde_json::to_value(state.progress))
            {
                event.extend(progress);
            }
            report(&event);
            match state.status {
                Status::Done => return Ok(()),
                Status::Failed => return Err(state.error.unwrap_or_default()),
                Status::Cancelled => return Err("its preparation was cancelled".to_owned()),
                Status::Waiting | Status::Running => {}
            }
            if states.changed().await.is_err() {
                return Err(ServerError::Stopping.to_string());
            }
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    fn change(&self, change: impl FnOnce(&mut JobState)) {
        self.state.send_modify(change);
    }
}

/// Cancels the job when dropped: its waiter was cancelled. Without the job it continues.
pub(crate) struct CancelOnDrop<'a>(pub Option<&'a Job>);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.0 {
            job.cancelled.send_replace(true);
        }
    }
}

impl Status {
    fn is_end(self) -> bool {
        matches!(self, Status::Done | Status::Failed | Status::Cancelled)
    }
}

impl Jobs {
    /// The jobs that previous servers left in these folders; none is running yet.
    pub(crate) fn recover(folders: Vec<PathBuf>) -> Jobs {
        let jobs = Jobs::default();
        for folder in folders {
            let journal = fs::read(folder.join(JOURNAL)).map_err(ServerError::from).and_then(|bytes| parse(&bytes));
            match journal {
                Ok(journal) => jobs.lock().jobs.push(Arc::new(Job::of(journal, folder))),
                Err(error) => tracing::warn!(%error, "cannot read the journal of a previous job"),
            }
        }
        jobs.lock().jobs.sort_by_key(|job| job.begun);
        jobs
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JobList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks an idle job as started; of two concurrent requests one is refused.
    fn admit(&self, job: &Arc<Job>) -> Result<()> {
        let mut known = self.lock();
        let ends = |job: &Arc<Job>| job.state.borrow().status.is_end();
        if known.stopped {
            return Err(ServerError::Stopping);
        }
        if job.deleted.load(Ordering::Relaxed) {
            return Err(unknown(&job.id));
        }
        if !matches!(job.state.borrow().status, Status::Cancelled | Status::Failed) {
            return Err(ServerError::Conflict(format!("job {} is not cancelled or failed", job.id)));
        }
        let waiting = known.jobs.iter().filter(|job| !ends(job)).count();
        if waiting >= MAX_JOBS {
            return Err(ServerError::Busy { running: waiting });
        }
        job.cancelled.send_replace(false);
        job.change(|state| (state.status, state.error) = (Status::Waiting, None));
        known.jobs.retain(|known| known.id != job.id);
        if known.jobs.len() >= MAX_JOBS
            && let Some(ended) = known.jobs.iter().position(ends)
        {
            let forgotten = known.jobs.remove(ended);
            if forgotten.state.borrow().status != Status::Done {
                forgotten.clear();
            }
        }
        known.jobs.push(Arc::clone(job));
        Ok(())
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<Job>> {
        let job = self.lock().jobs.iter().find(|job| job.id == id).cloned();
        job.ok_or_else(|| unknown(id))
    }

    /// Deletes a finished job and its files; `None` if it has not ended or is no longer known.
    fn delete(&self, job: &Arc<Job>) -> Option<()> {
        let mut known = self.lock();
        let at = known.jobs.iter().position(|known| Arc::ptr_eq(known, job))?;
        job.state.borrow().status.is_end().then_some(())?;
        job.deleted.store(true, Ordering::Relaxed);
        known.jobs.remove(at);
        drop(known);
        job.clear();
        Some(())
    }

    /// A job on a corpus that has not ended; with methods, one that prepares for one of them.
    pub(super) fn active(&self, corpus: &str, methods: Option<&[&'static dyn Method]>) -> Option<Arc<Job>> {
        let is_meant = |job: &&Arc<Job>| {
            job.corpus == corpus
                && methods.is_none_or(|methods| methods.contains(&job.method))
                && !job.state.borrow().status.is_end()
        };
        self.lock().jobs.iter().find(is_meant).cloned()
    }

    /// Forgets a job with its files, and cancels it if it has not ended.
    pub(super) fn withdraw(&self, job: &Arc<Job>) {
        let mut known = self.lock();
        known.jobs.retain(|known| !Arc::ptr_eq(known, job));
        job.deleted.store(true, Ordering::Relaxed);
        job.cancelled.send_replace(true);
        drop(known);
        // One that has not ended is cleared when it has.
        if job.state.borrow().status.is_end() {
            job.clear();
        }
    }

    /// Deletes all jobs on a corpus, and their files; those that have not ended are cancelled first.
    pub(crate) fn delete_of(&self, corpus: &str) {
        let mut known = self.lock();
        let (of_corpus, others): (Vec<_>, Vec<_>) = known.jobs.drain(..).partition(|job| job.corpus == corpus);
        known.jobs = others;
        for job in of_corpus {
            job.deleted.store(true, Ordering::Relaxed);
            job.cancelled.send_replace(true);
            // The others are removed when they have ended.
            if job.state.borrow().status.is_end() {
                job.clear();
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Jobs interrupted by the end of a previous server.
    fn interrupted(&self) -> Vec<Arc<Job>> {
        self.lock().jobs.iter().filter(|job| job.interrupted).cloned().collect()
    }

    /// Interrupts all jobs and refuses further ones.
    pub(crate) fn stop(&self) {
        let mut known = self.lock();
        known.stopped = true;
        // Waiting jobs first: they would start when running ones end.
        known.jobs.iter().rev().for_each(|job| {
            job.cancelled.send_replace(true);
        });
    }

    /// Waits until all jobs have ended.
    pub(crate) async fn drained(&self) {
        let jobs = self.lock().jobs.clone();
        for job in jobs {
            job.ended().await;
        }
    }
}

fn unknown(id: &str) -> ServerError {
    ServerError::NotFound(format!("job {id}"))
}

/// Resumes the jobs of a tenant that the end of a previous server interrupted.
pub(crate) fn resume_interrupted(app: &App, tenant: &Arc<Tenant>) {
    for job in tenant.jobs.interrupted() {
        let before = job.interruptions.fetch_add(1, Ordering::Relaxed);
        let resumed = if before < MAX_INTERRUPTIONS {
            spawn(app, tenant, &job)
        } else {
            let error = format!("it was interrupted {before} times and may be the cause; resume it to try again");
            job.interruptions.store(0, Ordering::Relaxed);
            job.change(|state| (state.status, state.error) = (Status::Failed, Some(error.clone())));
            job.write(Some(error), false)
        };
        if let Err(error) = resumed {
            tracing::warn!(%error, job = job.id, "did not resume an interrupted job");
        }
    }
}

/// Starts a new job.
///
/// # Errors
/// As [`spawn`]; the job is deleted then.
pub(super) fn start(app: &App, tenant: &Arc<Tenant>, job: Job) -> Result<Arc<Job>> {
    let job = Arc::new(job);
    spawn(app, tenant, &job).inspect_err(|_| job.clear())?;
    Ok(job)
}

/// Runs a job on a thread of its own. The job has ended when its thread has.
///
/// # Errors
/// [`ServerError::Busy`] if too many are waiting, [`ServerError::Conflict`] if it is running.
fn spawn(app: &App, tenant: &Arc<Tenant>, job: &Arc<Job>) -> Result<()> {
    tenant.jobs.admit(job)?;
    let (app, tenant, job) = (Arc::clone(app), Arc::clone(tenant), Arc::clone(job));
    tokio::spawn(async move {
        app.metrics.add(tenant.id, Quantity::Jobs, String::new(), 1.0);
        let work = {
            let (app, tenant, job) = (Arc::clone(&app), Arc::clone(&tenant), Arc::clone(&job));
            move || async move {
                // Otherwise a job that had failed or been cancelled would count as interrupted after a crash.
                job.write(None, false)?;
                let mut cancelled = job.cancelled.subscribe();
                tokio::select! {
                    biased;
                    _ = cancelled.wait_for(|cancelled| *cancelled) => Ok(Status::Cancelled),
                    outcome = run(&app, &tenant, &job) => outcome.map(|()| Status::Done),
                }
            }
        };
        let outcome = run_on_thread(work).await;
        // The corpus was deleted during the upload: the job can never be resumed.
        let is_orphan = matches!(outcome, Err(ServerError::Store(store::Error::UnknownCorpus { .. })));
        let (status, error) = match outcome {
            Ok(status) => (status, None),
            Err(error) => (Status::Failed, Some(error.to_string())),
        };
        // A job interrupted by shutdown is resumed by the next server.
        let stopped = tenant.jobs.is_stopped();
        let by_client = status == Status::Cancelled && !stopped;
        if stopped {
            // After a clean shutdown the job did not crash the server.
            job.interruptions.store(0, Ordering::Relaxed);
        }
        app.metrics.add(tenant.id, Quantity::Jobs, String::new(), -1.0);
        let (ended, why) = (Arc::clone(&job), error.clone());
        let kept = run_blocking(move || match status {
            _ if is_orphan || status == Status::Done => {
                ended.clear();
                Ok(())
            }
            _ => ended.write(why, by_client),
        });
        if let Err(error) = kept.await {
            tracing::warn!(%error, "cannot write the journal of a finished job");
        }
        job.change(|state| (state.status, state.error) = (status, error));
        if job.deleted.load(Ordering::Relaxed) {
            job.clear();
        }
    });
    Ok(())
}

/// Adds the files and runs the method's preparation.
async fn run(app: &App, tenant: &Tenant, job: &Job) -> Result<()> {
    let _lock = tenant.lock_corpus(&job.corpus).await;
    job.change(|state| {
        state.status = Status::Running;
        state.added.clear();
        state.unread.clone_from(&job.refused);
    });
    let mut writer = tenant.corpora.open_writer(&job.corpus)?;
    let trace = Trace::off();
    let session = Session {
        caller: &*app.caller,
        embedder: &*app.embedder,
        settings: Settings { method: job.method, ..default_settings() },
        trace: &trace,
        workflow: WorkflowId(random()?),
        tenant: tenant.id,
        priority: Priority::Bulk,
        on_text: None,
    };
    for upload in &job.files {
        match read(upload, job, app) {
            Ok(opened) => {
                let report_added = |name, memory::Added { document, change, pages }| {
                    let line = Added { name, document, change: change_label(change), pages };
                    job.change(|state| state.added.push(line));
                };
                match opened {
                    Opened::Text(text) => {
                        let added = memory::add_text(&text, &mut writer, &session)?;
                        report_added(text.path, added);
                    }
                    Opened::Sources(sources) => {
                        for source in sources {
                            let added = memory::add(&source, &mut writer, &session)?;
                            report_added(source.path, added);
                        }
                    }
                }
            }
            Err(reason) => job.change(|state| state.unread.push(FailedFile { name: upload.name.clone(), reason })),
        }
    }
    if !job.files.is_empty() && job.state.borrow().added.is_empty() {
        return Err(ServerError::Invalid { message: "none of the files could be read".into(), param: None });
    }
    let report = |Progress { step, unit, done, of }| {
        job.change(|state| state.progress = Some(StepProgress { name: step, unit, done, of }));
    };
    Ok(memory::prepare(&mut writer, &session, &mut { report }).await?)
}

/// Opens an upload; its documents have its name, not the path of the stored file.
fn read(upload: &Upload, job: &Job, app: &App) -> std::result::Result<Opened, String> {
    let path = job.folder.join(&upload.file);
    let options = ReadOptions {
        pdf_child: app.config.pdf_child.clone(),
        max_file_bytes: app.config.max_upload_bytes as u64,
        ..ReadOptions::default()
    };
    let mut opened = sources::open(&path, &options).map_err(|error| error.cause.to_string())?;
    match &mut opened {
        Opened::Text(text) => text.path.clone_from(&upload.name),
        Opened::Sources(sources) => {
            let prefix = path.to_string_lossy();
            for source in sources {
                let rest = source.path.strip_prefix(&*prefix).unwrap_or_default();
                source.path = format!("{}{rest}", upload.name);
            }
        }
    }
    Ok(opened)
}

fn change_label(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Replaced => "replaced",
        Change::Recut => "cut anew",
        Change::Unchanged => "unchanged",
    }
}

/// List jobs, the latest last.
#[utoipa::path(get, path = "/v1/jobs", tag = "Memory", responses((status = 200, body = Value)))]
async fn list(Extension(tenant): CurrentTenant) -> Json<Value> {
    let jobs: Vec<Value> = tenant.jobs.lock().jobs.iter().map(|job| job.to_json()).collect();
    Json(json!({ "jobs": jobs }))
}

/// Show a job.
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn show(Extension(tenant): CurrentTenant, Path(job): Path<String>) -> Result<Json<Value>> {
    Ok(Json(tenant.jobs.get(&job)?.to_json()))
}

/// Follow a job: an event `job` on each progress, until it has ended.
#[utoipa::path(get, path = "/v1/jobs/{job}/events", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404)))]
async fn events(Extension(tenant): CurrentTenant, Path(job): Path<String>) -> Result<Response> {
    let job = tenant.jobs.get(&job)?;
    respond(Framing::Events, |sink| async move {
        let mut states = job.state.subscribe();
        loop {
            sink.wait_for_capacity().await;
            let state = states.borrow_and_update().clone();
            sink.event("job", &job.to_json_with(&state));
            if state.status.is_end() || states.changed().await.is_err() {
                return Ok(());
            }
        }
    })
    .await
}

/// Cancel a job and keep its finished work; a job that has ended is deleted with its files.
#[utoipa::path(delete, path = "/v1/jobs/{job}", tag = "Memory", params(("job" = String, Path)), responses((status = 200, body = Value), (status = 404)))]
async fn cancel(Extension(tenant): CurrentTenant, Path(job): Path<String>) -> Result<Json<Value>> {
    let job = tenant.jobs.get(&job)?;
    let (jobs, ended) = (Arc::clone(&tenant), Arc::clone(&job));
    if run_blocking(move || Ok(jobs.jobs.delete(&ended))).await?.is_none() {
        job.cancelled.send_replace(true);
        job.ended().await;
    }
    Ok(Json(job.to_json()))
}

/// Resume a cancelled or failed job.
#[utoipa::path(post, path = "/v1/jobs/{job}/resume", tag = "Memory", params(("job" = String, Path)),
    responses((status = 202, body = Value), (status = 404), (status = 409, description = "The job is running or done")))]
async fn resume(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(job): Path<String>,
) -> Result<(StatusCode, Json<Value>)> {
    let job = tenant.jobs.get(&job)?;
    spawn(&app, &tenant, &job)?;
    Ok((StatusCode::ACCEPTED, Json(job.to_json())))
}
