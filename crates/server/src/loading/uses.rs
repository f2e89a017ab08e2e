//! How a loaded model is used: by how many requests, since when by none, and how long it stays.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::Status;
use super::keep_alive::KeepAlive;

/// The uses of one model.
pub(super) struct Uses {
    state: Mutex<State>,
}

struct State {
    in_use: usize,
    last: Instant,
    keep_alive: KeepAlive,
}

impl Uses {
    pub fn new(keep_alive: KeepAlive) -> Arc<Uses> {
        Arc::new(Uses { state: Mutex::new(State { in_use: 0, last: Instant::now(), keep_alive }) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a use, which ends when it is dropped; `keep_alive` replaces the time that the model stays.
    pub fn begin(self: &Arc<Self>, keep_alive: Option<KeepAlive>, changes: watch::Sender<u64>) -> Use {
        let mut state = self.lock();
        state.in_use += 1;
        if let Some(keep_alive) = keep_alive {
            state.keep_alive = keep_alive;
        }
        drop(state);
        Use { uses: Arc::clone(self), changes }
    }

    /// The end of the last use; `None` while there is one.
    pub fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.in_use == 0).then_some(state.last)
    }

    /// When it is to be unloaded; `None` while it is used, or if it stays.
    pub fn idle_until(&self) -> Option<Instant> {
        let state = self.lock();
        match state.keep_alive {
            KeepAlive::For(time) if state.in_use == 0 => Some(state.last + time),
            _ => None,
        }
    }

    /// The number of uses, and when it would be unloaded if they ended now; `None` if it stays.
    fn status(&self) -> (usize, Option<Instant>) {
        let state = self.lock();
        let last = if state.in_use == 0 { state.last } else { Instant::now() };
        let expires = match state.keep_alive {
            KeepAlive::For(time) => Some(last + time),
            KeepAlive::Forever => None,
        };
        (state.in_use, expires)
    }

    /// The same for clients.
    pub fn status_now(&self) -> Status {
        let now = Instant::now();
        let (in_use, expires) = self.status();
        Status { in_use, expires_in: expires.map(|at| at.saturating_duration_since(now)) }
    }

    /// It leaves with the end of its last use.
    pub fn expire_when_idle(&self) {
        self.lock().keep_alive = KeepAlive::For(std::time::Duration::ZERO);
    }
}

/// A use of a model, which is not unloaded before it is dropped.
pub(crate) struct Use {
    uses: Arc<Uses>,
    changes: watch::Sender<u64>,
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut state = self.uses.lock();
        state.in_use -= 1;
        state.last = Instant::now();
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }
}
