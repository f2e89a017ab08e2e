//! The jobs of a tenant.

use std::fs;
use std::mem::replace;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use memory::Method;

use super::job::{Job, Status};
use crate::error::{Result, ServerError};
use crate::json::parse;
use crate::uploads::JOURNAL;

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

    /// All of them, in order of creation.
    pub(super) fn all(&self) -> Vec<Arc<Job>> {
        self.lock().jobs.clone()
    }

    /// Marks an idle job as started; of two concurrent requests one is refused.
    pub(super) fn admit(&self, job: &Arc<Job>) -> Result<()> {
        let mut known = self.lock();
        let ends = |job: &Arc<Job>| job.state.borrow().status.is_end();
        if known.stopped {
            return Err(ServerError::Stopping);
        }
        if !job.folder.exists() {
            // All its files were deleted with their documents.
            job.deleted.store(true, Ordering::Relaxed);
            known.jobs.retain(|known| known.id != job.id);
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
    pub(in crate::corpora) fn delete(&self, job: &Arc<Job>) -> Option<()> {
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
    pub(in crate::corpora) fn active(&self, corpus: &str, methods: Option<&[&'static dyn Method]>) -> Option<Arc<Job>> {
        let is_meant = |job: &&Arc<Job>| {
            job.corpus == corpus
                && methods.is_none_or(|methods| methods.contains(&job.method))
                && !job.state.borrow().status.is_end()
        };
        self.lock().jobs.iter().find(is_meant).cloned()
    }

    /// Forgets a job with its files, and cancels it if it has not ended.
    pub(in crate::corpora) fn withdraw(&self, job: &Arc<Job>) {
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

    /// Jobs interrupted by the end of a previous server.
    pub(super) fn interrupted(&self) -> Vec<Arc<Job>> {
        self.lock().jobs.iter().filter(|job| job.interrupted).cloned().collect()
    }

    /// Interrupts all jobs and refuses further ones.
    pub(crate) fn stop(&self) {
        let mut known = self.lock();
        known.stopped = true;
        // Waiting jobs first: they would start when running ones end.
        known.jobs.iter().rev().for_each(|job| {
            job.cancelled.send_if_modified(|cancelled| {
                job.stopped.store(!*cancelled, Ordering::Relaxed);
                !replace(cancelled, true)
            });
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

#[cfg(test)]
mod tests {
    use super::super::job::NewJob;
    use super::super::scripted::{new_folder, new_job};
    use super::*;

    #[test]
    fn a_job_that_a_client_cancelled_is_not_interrupted_by_the_end_of_the_server() {
        let jobs = Jobs::default();
        let [cancelled, running] = ["job-1", "job-2"].map(|id| {
            let NewJob { job, folder } = new_job(id, &[], new_folder());
            let job = Arc::new(job);
            jobs.admit(&job).expect("it may start");
            (job, folder)
        });
        cancelled.0.stop();
        jobs.stop();
        assert_eq!([cancelled, running].map(|(job, _)| job.stopped.load(Ordering::Relaxed)), [false, true]);
    }
}
