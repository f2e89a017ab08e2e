//! Preparing a corpus for a question: by a job that questions share, within a bounded time.

use std::sync::Arc;
use std::time::Duration;

use calls::{Priority, WorkflowId};
use memory::{Method, Session, Settings, Trace};
use serde_json::Value;
use store::Layer;
use tokio::time::{Instant, timeout_at};

use super::jobs::{Job, NewJob, start};
use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::fresh::fresh_id;
use crate::tenant::Tenant;

/// What a corpus has for a question.
enum State {
    Ready,
    /// The preparation for this method is incomplete.
    Lacking(&'static dyn Method),
    /// There are no pages.
    Empty,
}

/// Jobs that are awaited for one question: documents that are added meanwhile have to be prepared too.
const MAX_JOBS: usize = 4;

/// Waits until a corpus is prepared for the method of these settings: for a job that does so already, else for a new one.
/// Gives the reason why something may be missing after the time for it, which `wait` can shorten; the job then continues. A new job is cancelled
/// if the caller drops this future. Where the data folder cannot be written, that is the reason.
///
/// # Errors
/// If the corpus cannot be read, or no job can be started.
pub(super) async fn prepare(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: &str,
    settings: &Settings,
    wait: Option<Duration>,
    report: impl Fn(&Value),
) -> Result<String> {
    let most = app.config.preparation.min(app.config.deadline / 2);
    let until = Instant::now() + wait.unwrap_or(most).min(most);
    for _ in 0..MAX_JOBS {
        let method = match state(app, tenant, corpus, settings).await? {
            State::Ready => break,
            State::Lacking(method) => Some(method),
            State::Empty => None,
        };
        // A job of `auto` prepares for the same method.
        let methods = method.map(|method| [method, settings.method]);
        let active = tenant.jobs.active(corpus, methods.as_ref().map(<[_; 2]>::as_slice));
        let (job, mut own) = match (active, method) {
            (Some(job), _) => (job, None),
            (None, None) => break,
            (None, Some(method)) => match begin(app, tenant, corpus, method).await {
                Ok(job) => (Arc::clone(&job), Some(Own(tenant, Some(job)))),
                Err(error) if matches!(error, ServerError::Busy { .. }) || error.is_of_disk() => {
                    return Ok(error.to_string());
                }
                Err(error) => return Err(error),
            },
        };
        let ended = timeout_at(until, job.follow(&report)).await;
        match (&ended, &mut own) {
            (Ok(Err(reason)), Some(_)) => return Ok(reason.clone()),
            // The job of another request, which may have withdrawn it.
            (Ok(Err(_)), None) => {}
            (Ok(Ok(())) | Err(_), own) => own.iter_mut().for_each(Own::leave),
        }
        if ended.is_err() {
            return Ok("the rest is still being prepared".to_owned());
        }
    }
    Ok("documents were added meanwhile".to_owned())
}

/// Starts a job that prepares a corpus for a method.
async fn begin(app: &App, tenant: &Arc<Tenant>, corpus: &str, method: &'static dyn Method) -> Result<Arc<Job>> {
    let folder = tenant.uploads.create()?;
    start(app, tenant, NewJob::new(fresh_id("job")?, corpus.to_owned(), method, Vec::new(), Vec::new(), folder)).await
}

/// A job of this request, which is withdrawn with it.
struct Own<'a>(&'a Tenant, Option<Arc<Job>>);

impl Own<'_> {
    /// Lets the job continue without the request.
    fn leave(&mut self) {
        self.1 = None;
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        if let Some(job) = &self.1 {
            self.0.jobs.withdraw(job);
        }
    }
}

async fn state(app: &App, tenant: &Arc<Tenant>, corpus: &str, settings: &Settings) -> Result<State> {
    let (app, tenant, corpus) = (Arc::clone(app), Arc::clone(tenant), corpus.to_owned());
    let settings = settings.clone();
    run_blocking(move || {
        let corpus = tenant.open(&corpus)?;
        if corpus.count(Layer::Page)? == 0 {
            return Ok(State::Empty);
        }
        let session = Session {
            caller: &*app.caller,
            embedder: &*app.embedder,
            settings,
            trace: &Trace::off(),
            workflow: WorkflowId(0),
            tenant: tenant.id,
            priority: Priority::Interactive,
            on_text: None,
        };
        let method = memory::choose(&corpus, &session)?.map_or(session.settings.method, |choice| choice.method);
        let lacks = memory::prepared(&corpus, &session.with_method(method))?.is_some();
        Ok(if lacks { State::Lacking(method) } else { State::Ready })
    })
    .await
}
