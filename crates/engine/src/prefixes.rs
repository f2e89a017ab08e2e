//! Cached prefixes as callers control them: pin, save, restore.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use calls::{Call, CallError, Kept, WorkflowId};
use scheduler::{Namespace, PinId};
use tokio::sync::oneshot;

use crate::handle::{Engine, Front, Rendered};
use crate::message::Message;
use crate::namespace::namespace;
use crate::snapshot::{Saved, SnapshotError};

impl Engine {
    /// Pins the cached part of a call's prompt up to its first volatile segment, until the pin is dropped or expires.
    /// At most half of all pages can be pinned. A pin serves calls of the same tenant only.
    ///
    /// # Errors
    /// As [`Engine::prompt_ids`]; [`CallError::Closed`].
    pub async fn pin(&self, call: &Call, lifetime: Duration) -> Result<Pin, CallError> {
        let (model, front) = self.front(call.role)?;
        let Rendered { tokens, segments, .. } = Self::prompt(front, call)?;
        let prefix = tokens[..segments.stable_tokens()].to_vec();
        let id = PinId(self.next_id());
        let (reply, receiver) = oneshot::channel();
        let until = Instant::now() + lifetime;
        self.post(Message::Pin { model, id, namespace: namespace(call.tenant), prefix, until, reply })
            .ok_or(CallError::Closed)?;
        let tokens = receiver.await.map_err(|_| CallError::Closed)?;
        Ok(Pin { tokens, model, id, engine: self.clone() })
    }

    /// See [`calls::Caller::keep_prefixes`].
    pub(crate) async fn keep(&self, namespace: Namespace, workflow: WorkflowId, folder: &Path) -> Kept {
        let mut kept = Kept::default();
        for (model, front) in self.fronts().iter().enumerate() {
            note(&mut kept, self.save(model, front, namespace, workflow, file(folder, front)).await);
        }
        kept
    }

    async fn save(
        &self,
        model: usize,
        front: &Front,
        namespace: Namespace,
        workflow: WorkflowId,
        path: PathBuf,
    ) -> Result<usize, SnapshotError> {
        let identity = front.identity.digest()?;
        let (reply, receiver) = oneshot::channel();
        let message = Message::Save { model, namespace, workflow, identity, path, reply };
        self.post(message).ok_or(SnapshotError::Closed)?;
        receiver.await.map_err(|_| SnapshotError::Closed)?
    }

    /// See [`calls::Caller::bring_prefixes`].
    pub(crate) async fn bring(&self, namespace: Namespace, folder: &Path) -> Kept {
        let mut kept = Kept::default();
        for (model, front) in self.fronts().iter().enumerate() {
            note(&mut kept, self.load(model, front, namespace, &file(folder, front)).await);
        }
        kept
    }

    async fn load(
        &self,
        model: usize,
        front: &Front,
        namespace: Namespace,
        path: &Path,
    ) -> Result<usize, SnapshotError> {
        let Some(saved) = front.checked.open(path, front, namespace)? else { return Ok(0) };
        let (reply, receiver) = oneshot::channel();
        self.post(Message::Load { model, namespace, saved, reply }).ok_or(SnapshotError::Closed)?;
        receiver.await.map_err(|_| SnapshotError::Closed)?
    }
}

/// The snapshot file of a model.
fn file(folder: &Path, front: &Front) -> PathBuf {
    folder.join(format!("{}.kv", &blake3::hash(front.name.as_bytes()).to_hex()[..16]))
}

fn note(kept: &mut Kept, outcome: Result<usize, SnapshotError>) {
    match outcome {
        Ok(tokens) => kept.tokens += tokens,
        Err(error) => kept.refused.push(error.to_string()),
    }
}

/// Snapshots whose digest has been checked, so that not every question to a corpus checks it again.
#[derive(Default)]
pub(crate) struct Checked(Mutex<HashMap<PathBuf, Version>>);

/// Files are replaced, never modified.
type Version = (Option<SystemTime>, u64);

impl Checked {
    /// The file, if it exists. It is closed after use, since it may have to be deleted with its documents.
    fn open(&self, path: &Path, front: &Front, namespace: Namespace) -> Result<Option<Saved>, SnapshotError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(found) = fs::metadata(path) else { return Ok(None) };
        let version = (found.modified().ok(), found.len());
        let whole = known.remove(path) == Some(version);
        let saved = Saved::open(path, &front.identity.digest()?, namespace, front.page_bytes, whole)?;
        known.insert(path.to_owned(), version);
        Ok(Some(saved))
    }
}

/// A pinned prefix; dropping it releases the pin.
pub struct Pin {
    /// Pinned tokens: whole cached pages.
    pub tokens: usize,
    model: usize,
    id: PinId,
    engine: Engine,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.engine.post(Message::Unpin { model: self.model, id: self.id });
    }
}
