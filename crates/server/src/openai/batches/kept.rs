//! The batches of a holder on disk.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::private;

use super::super::records::{Record, Records};
use crate::error::Result;
use crate::fresh::since_1970;

/// Maximum batches that are listed; of more the oldest that have ended are forgotten.
const MAX_BATCHES: usize = 1000;

const DAY_SECONDS: u64 = 24 * 3600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Validating,
    InProgress,
    Finalizing,
    Completed,
    Failed,
    Cancelling,
    Cancelled,
}

impl Status {
    pub fn is_end(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// Requests by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub total: usize,
    pub completed: usize,
    pub failed: usize,
}

/// A batch of a holder. Its replies are beside it until it has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) endpoint: String,
    pub(super) input: String,
    pub(super) window: String,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) status: Status,
    /// When it came to each status, in seconds since 1970.
    pub(super) times: BTreeMap<String, u64>,
    pub(super) counts: Counts,
    pub(super) output: Option<String>,
    pub(super) errors: Option<String>,
    /// Why it failed.
    pub(super) failure: Option<String>,
}

impl Record for Batch {
    const PREFIX: &'static str = "batch";
    const NOUN: &'static str = "batch";

    fn id(&self) -> &str {
        &self.id
    }
}

/// The batches of one holder.
pub(crate) struct Batches {
    pub(super) records: Records<Batch>,
    /// One batch is answered at a time.
    pub(super) turn: tokio::sync::Mutex<()>,
}

impl Batches {
    /// Those below the folder of a holder.
    pub fn new(folder: &Path) -> Batches {
        Batches { records: Records::new(folder.join("batches")), turn: tokio::sync::Mutex::default() }
    }

    /// Permission to run batches, which one server on this data folder has at a time; none while another has it.
    pub(super) fn try_alone(&self) -> Result<Option<File>> {
        private::folder(self.records.folder())?;
        let guard = private::create(&self.records.folder().join("lock"))?;
        match guard.try_lock() {
            Ok(()) => Ok(Some(guard)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    pub(super) fn change<T>(&self, id: &str, work: impl FnOnce(&mut Batch) -> T) -> Result<T> {
        let _one = self.records.lock()?;
        let mut batch = self.records.read(id)?;
        let outcome = work(&mut batch);
        self.records.write(&batch)?;
        Ok(outcome)
    }

    /// Forgets the oldest batches that have ended, if there are too many.
    pub(super) fn trim(&self) -> Result<()> {
        let mut all = self.records.all()?;
        let more = all.len().saturating_sub(MAX_BATCHES - 1);
        all.retain(|batch| batch.status.is_end());
        all.sort_by_key(|batch| batch.created);
        all.iter().take(more).try_for_each(|batch| self.records.remove(&batch.id))
    }
}

impl Batch {
    pub(super) fn set(&mut self, status: Status) {
        self.status = status;
        let name = json!(status).as_str().unwrap_or_default().to_owned();
        self.times.insert(name, since_1970().as_secs());
    }

    pub(super) fn to_json(&self) -> Value {
        let error = |message| json!({ "code": "invalid_file", "message": message, "line": null, "param": null });
        let errors = self.failure.as_ref().map(|message| json!({ "object": "list", "data": [error(message)] }));
        let mut shown = json!({
            "id": self.id, "object": "batch", "endpoint": self.endpoint, "errors": errors,
            "input_file_id": self.input, "completion_window": self.window, "status": self.status,
            "output_file_id": self.output, "error_file_id": self.errors, "created_at": self.created,
            "expires_at": self.created + DAY_SECONDS, "expired_at": null, "request_counts": self.counts,
            "metadata": self.metadata,
        });
        for name in ["in_progress", "finalizing", "completed", "failed", "cancelling", "cancelled"] {
            shown[format!("{name}_at")] = json!(self.times.get(name));
        }
        shown
    }
}
