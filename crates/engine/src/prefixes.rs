//! What a caller may do about prefixes that are cached: keep them from going, save them, bring them back.

use std::path::Path;
use std::time::{Duration, Instant};

use calls::{Call, CallError, Role};
use scheduler::PinId;
use tokio::sync::oneshot;

use crate::handle::{Engine, Rendered};
use crate::mailbox::Message;
use crate::snapshot::{Saved, Snapshot, SnapshotError};

impl Engine {
    /// Keeps what is cached of the beginning of a call's prompt, all before its first volatile segment, until the pin is
    /// dropped or its lifetime is over. Of all pages, half can be pinned.
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
        self.post(Message::Pin { model, id, prefix, until, reply }).ok_or(CallError::Closed)?;
        let tokens = receiver.await.map_err(|_| CallError::Closed)?;
        Ok(Pin { tokens, model, id, engine: self.clone() })
    }

    /// Saves the keys and values of what prompts to the model of a role have begun with, so that they need not be computed
    /// after a restart.
    ///
    /// # Errors
    /// A [`SnapshotError`]; the file that was there before stays.
    pub async fn save_prefixes(&self, role: Role, path: &Path) -> Result<Snapshot, SnapshotError> {
        let (model, front) = self.front(role).map_err(|_| SnapshotError::NoModel)?;
        let (identity, path) = (front.identity.digest()?, path.to_owned());
        let (reply, receiver) = oneshot::channel();
        self.post(Message::Save { model, identity, path, reply }).ok_or(SnapshotError::NoModel)?;
        receiver.await.map_err(|_| SnapshotError::NoModel)?
    }

    /// Brings back what [`Engine::save_prefixes`] saved, as far as there is room. What is refused is computed when it is
    /// asked about.
    ///
    /// # Errors
    /// A [`SnapshotError`] for a file that is not there, not whole, or not of this very model.
    pub async fn load_prefixes(&self, role: Role, path: &Path) -> Result<Snapshot, SnapshotError> {
        let (model, front) = self.front(role).map_err(|_| SnapshotError::NoModel)?;
        let saved = Saved::open(path, &front.identity.digest()?, front.page_bytes)?;
        let (reply, receiver) = oneshot::channel();
        self.post(Message::Load { model, saved, reply }).ok_or(SnapshotError::NoModel)?;
        receiver.await.map_err(|_| SnapshotError::NoModel)?
    }
}

/// A prefix that stays cached while this lives.
pub struct Pin {
    /// Tokens that are kept; whole pages of those that had been computed.
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
