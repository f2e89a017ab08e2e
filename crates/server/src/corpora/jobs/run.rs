//! Running jobs, each on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use calls::{Priority, WorkflowId};
use memory::{Progress, Session, Settings, Trace};
use store::Document;

use super::add::add;
use super::job::{Job, NewJob, Status, StepProgress};
use crate::app::App;
use crate::blocking::{run_blocking, run_on_thread};
use crate::corpora::settings::default_settings;
use crate::error::{Result, ServerError};
use crate::fresh::random;
use crate::metrics::Quantity;
use crate::tenant::Tenant;

/// A job interrupted this often without any progress may itself crash the server: it is not resumed automatically any more.
const MAX_INTERRUPTIONS: u32 = 3;

/// Resumes the jobs of a tenant that the end of a previous server interrupted.
pub(crate) fn resume_interrupted(app: &App, tenant: &Arc<Tenant>) {
    for job in tenant.jobs.interrupted() {
        let before = job.interruptions.fetch_add(1, Ordering::Relaxed);
        let resumed = if before < MAX_INTERRUPTIONS {
            spawn(app, tenant, &job)
        } else {
            let error = format!(
                "it was interrupted {before} times without progress and may be the cause; resume it to try again"
            );
            job.interruptions.store(0, Ordering::Relaxed);
            job.change(|state| (state.status, state.error) = (Status::Failed, Some(error.clone())));
            job.write(Some(error), false)
        };
        if let Err(error) = resumed {
            tracing::warn!(%error, job = job.id, "did not resume an interrupted job");
        }
    }
}

/// Starts a new job. If the caller drops this future, it is not started.
///
/// # Errors
/// If its journal cannot be written, and as [`spawn`]; nothing is left of the job then.
pub(in crate::corpora) async fn start(app: &App, tenant: &Arc<Tenant>, new: NewJob) -> Result<Arc<Job>> {
    let written = run_blocking(move || {
        new.job.write(None, false)?;
        Ok(new)
    });
    keep(app, tenant, written.await?)
}

/// The same on a thread for blocking work.
///
/// # Errors
/// As [`start`].
pub(in crate::corpora) fn start_now(app: &App, tenant: &Arc<Tenant>, new: NewJob) -> Result<Arc<Job>> {
    new.job.write(None, false)?;
    keep(app, tenant, new)
}

/// Starts a job whose journal is written.
fn keep(app: &App, tenant: &Arc<Tenant>, NewJob { job, folder }: NewJob) -> Result<Arc<Job>> {
    let job = Arc::new(job);
    spawn(app, tenant, &job)?;
    // From here on the job owns the folder.
    drop(folder.keep());
    Ok(job)
}

/// Runs a job on a thread of its own. The job has ended when its thread has.
///
/// # Errors
/// [`ServerError::Busy`] if too many are waiting, [`ServerError::Conflict`] if it is running.
pub(super) fn spawn(app: &App, tenant: &Arc<Tenant>, job: &Arc<Job>) -> Result<()> {
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
                    outcome = run(&app, &tenant, &job) => outcome,
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
        let stopped = job.stopped.load(Ordering::Relaxed);
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

/// Adds the files and runs the method's preparation, unless the job is cancelled meanwhile.
async fn run(app: &App, tenant: &Tenant, job: &Job) -> Result<Status> {
    let _lock = tenant.lock_corpus(&job.corpus).await;
    job.change(|state| {
        state.status = Status::Running;
        state.added.clear();
        state.added_in_part.clear();
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
    let is_replaced = |document: &Document| job.files.iter().any(|upload| document.path.starts_with(&upload.name));
    tenant.forget.change(&mut writer, is_replaced, |writer| add(job, app, writer, &session))?;
    if job.is_cancelled() {
        return Ok(Status::Cancelled);
    }
    if !job.files.is_empty() && job.state.borrow().added.is_empty() {
        return Err(ServerError::refused("none of the files could be read"));
    }
    let report = |Progress { step, unit, done, of }| {
        job.change(|state| state.progress = Some(StepProgress { name: step, unit, done, of }));
        // What is done is durable, so a next server begins behind what interrupted the job.
        if done > 0
            && job.interruptions.swap(0, Ordering::Relaxed) > 0
            && let Err(error) = job.write(None, false)
        {
            tracing::warn!(%error, job = job.id, "cannot write the journal of a job");
        }
    };
    memory::prepare(&mut writer, &session, &mut { report }).await?;
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::poll;
    use tokio::runtime::Builder;

    use super::super::scripted::{app, new_folder, new_job};
    use super::*;

    #[tokio::test]
    async fn a_job_that_is_cancelled_before_its_first_file_is_not_one_without_readable_files() {
        let data = new_folder();
        let app = app(&data);
        let tenant = app.tenants.anonymous();
        drop(tenant.corpora.create("pell").expect("a corpus"));
        let folder = tenant.uploads.create().expect("there is room");
        std::fs::write(folder.path().join("0.txt"), "The lamp was out.").expect("it can be written");
        let NewJob { job, folder: _folder } = new_job("job-1", &[("a.txt", "0.txt")], folder);
        job.stop();
        assert_eq!(run(&app, &tenant, &job).await.expect("it does not fail"), Status::Cancelled);
        assert!(job.state.borrow().added.is_empty());
    }

    #[test]
    fn a_job_whose_client_disconnects_before_its_start_leaves_no_journal() {
        let data = new_folder();
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            let app = app(&data);
            let tenant = app.tenants.anonymous();
            let folder = tenant.uploads.create().expect("there is room");
            let place = folder.path().to_owned();
            let new = new_job("job-1", &[], folder);
            // The only thread for blocking work waits, so the journal is written after the client has disconnected.
            let (disconnect, disconnected) = mpsc::channel::<()>();
            let waiting = tokio::task::spawn_blocking(move || disconnected.recv().is_err());
            let mut started = Box::pin(start(&app, &tenant, new));
            assert!(poll!(started.as_mut()).is_pending());
            drop(started);
            drop(disconnect);
            assert!(waiting.await.expect("it ends"));
            run_blocking(|| Ok(())).await.expect("what was sent before it has ended");
            assert!(!place.exists() && tenant.jobs.all().is_empty());
        });
    }
}
