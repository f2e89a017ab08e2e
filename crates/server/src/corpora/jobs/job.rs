//! One job: its files, its journal, and how far it is.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use memory::Method;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use store::{DocId, private};
use tempfile::TempDir;
use tokio::sync::watch;

use super::failed_file::{FailedFile, hint};
use crate::error::{Result, ServerError};
use crate::fresh::since_1970;
use crate::uploads::JOURNAL;

/// A file to ingest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::corpora) struct Upload {
    /// The name of its document.
    pub name: String,
    /// Its file name in the job's folder.
    pub file: String,
}

/// The journal of a job, stored beside its files for the next server.
#[derive(Serialize, Deserialize)]
pub(super) struct Journal {
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

fn method_by_name<'de, D: Deserializer<'de>>(method: D) -> std::result::Result<&'static dyn Method, D::Error> {
    String::deserialize(method)?.parse().map_err(D::Error::custom)
}

/// One job.
pub(crate) struct Job {
    pub(super) id: String,
    pub(super) corpus: String,
    pub(super) method: &'static dyn Method,
    pub(super) files: Vec<Upload>,
    pub(super) refused: Vec<FailedFile>,
    /// Folder of files and journal until the files are ingested.
    pub(super) folder: PathBuf,
    pub(super) state: watch::Sender<JobState>,
    pub(super) cancelled: watch::Sender<bool>,
    pub(super) begun: u64,
    pub(super) interruptions: AtomicU32,
    /// True if the previous server did not shut down cleanly.
    pub(super) interrupted: bool,
    /// True if the end of this server cancelled it, not a client before.
    pub(super) stopped: AtomicBool,
    /// True if it was deleted: its files are removed when it has ended.
    pub(super) deleted: AtomicBool,
}

/// The progress of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct JobState {
    pub(super) status: Status,
    pub(super) progress: Option<StepProgress>,
    pub(super) added: Vec<Added>,
    /// Files whose reading failed after their first documents were added.
    pub(super) added_in_part: Vec<AddedInPart>,
    /// Files that could not be read.
    pub(super) unread: Vec<FailedFile>,
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Waiting,
    Running,
    Done,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct StepProgress {
    #[serde(rename = "step")]
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) done: usize,
    pub(super) of: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Added {
    pub(super) name: String,
    pub(super) document: DocId,
    pub(super) change: &'static str,
    pub(super) pages: usize,
}

/// A file of several documents, as a mailbox is, whose reading failed after the first of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct AddedInPart {
    pub(super) name: String,
    /// How many of its documents were read before the error. The corpus has these.
    pub(super) documents: usize,
    pub(super) reason: String,
}

/// How far a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    Running,
    Done,
    /// Only its first documents were added, for this reason.
    DoneInPart(String),
    Cancelled,
    Failed(String),
}

/// A job that has not started. It was never accepted: its files and its journal are deleted when it is dropped.
pub(in crate::corpora) struct NewJob {
    pub(super) job: Job,
    pub(super) folder: TempDir,
}

impl NewJob {
    /// A job with this id, whose files are in the folder.
    pub fn new(
        id: String,
        corpus: String,
        method: &'static dyn Method,
        files: Vec<Upload>,
        refused: Vec<FailedFile>,
        folder: TempDir,
    ) -> NewJob {
        let begun = since_1970().as_millis() as u64;
        let (error, cancelled, interruptions) = (None, false, 0);
        let journal = Journal { id, corpus, method, files, refused, begun, error, cancelled, interruptions };
        NewJob { job: Job::of(journal, folder.path().to_owned()), folder }
    }
}

impl Job {
    /// A job that is not running.
    pub(super) fn of(journal: Journal, folder: PathBuf) -> Job {
        let Journal { id, corpus, method, files, refused, begun, error, cancelled, interruptions } = journal;
        let interrupted = error.is_none() && !cancelled;
        let status = if error.is_some() { Status::Failed } else { Status::Cancelled };
        let (added, added_in_part, unread) = (Vec::new(), Vec::new(), refused.clone());
        let state = JobState { status, progress: None, added, added_in_part, unread, error };
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
            stopped: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
        }
    }

    /// Writes the journal atomically.
    pub(super) fn write(&self, error: Option<String>, cancelled: bool) -> Result<()> {
        let (id, corpus) = (self.id.clone(), self.corpus.clone());
        let (files, refused) = (self.files.clone(), self.refused.clone());
        let interruptions = self.interruptions.load(Ordering::Relaxed);
        let (method, begun) = (self.method, self.begun);
        let journal = Journal { id, corpus, method, files, refused, begun, error, cancelled, interruptions };
        Ok(private::replace(&self.folder.join(JOURNAL), json!(journal).to_string())?)
    }

    /// Removes files and journal of a job that is done or cannot be resumed.
    pub(super) fn clear(&self) {
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

    pub(super) fn to_json_with(&self, state: &JobState) -> Value {
        let files: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let mut shown = json!({ "id": self.id, "corpus": self.corpus, "method": self.method, "files": files });
        if let (Some(shown), Ok(Value::Object(state))) = (shown.as_object_mut(), serde_json::to_value(state)) {
            shown.extend(state);
        }
        shown["hint"] = json!(hint(&state.unread));
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

    /// How far one of its files is.
    pub(in crate::corpora) fn progress_of(&self, name: &str) -> Progress {
        let state = self.state.borrow();
        if let Some(unread) = state.unread.iter().find(|file| file.name == name) {
            return Progress::Failed(unread.reason.clone());
        }
        match state.status {
            Status::Waiting | Status::Running => Progress::Running,
            Status::Done => match state.added_in_part.iter().find(|part| part.name == name) {
                Some(part) => Progress::DoneInPart(part.description()),
                None => Progress::Done,
            },
            Status::Cancelled => Progress::Cancelled,
            Status::Failed => Progress::Failed(state.error.clone().unwrap_or_default()),
        }
    }

    /// Asks it to end.
    pub(in crate::corpora) fn stop(&self) {
        self.cancelled.send_replace(true);
    }

    /// Whether it was asked to end.
    pub(super) fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut JobState)) {
        self.state.send_modify(change);
    }
}

impl AddedInPart {
    fn description(&self) -> String {
        let AddedInPart { documents, reason, .. } = self;
        let read = if *documents == 1 { "document was".to_owned() } else { format!("{documents} documents were") };
        format!("only its first {read} read: {reason}")
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
    pub(super) fn is_end(self) -> bool {
        matches!(self, Status::Done | Status::Failed | Status::Cancelled)
    }
}
