//! Admission control: bounds the calls running and waiting for one model, which bounds the memory of the queue.

use std::sync::atomic::{AtomicUsize, Ordering};

use calls::CallError;

use crate::Config;

/// Permits for the calls of one model.
pub(crate) struct Places {
    taken: AtomicUsize,
    all: usize,
}

/// A permit, released when dropped.
pub(crate) struct Place<'a>(&'a Places);

impl Places {
    /// Permits for running and waiting calls.
    pub fn of(config: Config) -> Places {
        Places { taken: AtomicUsize::new(0), all: config.max_running.saturating_add(config.max_waiting) }
    }

    /// # Errors
    /// [`CallError::Overloaded`] if none is free.
    pub fn take(&self) -> Result<Place<'_>, CallError> {
        let more = |taken: usize| (taken < self.all).then_some(taken + 1);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Place(self)),
            Err(taken) => Err(CallError::Overloaded { queued: taken }),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
