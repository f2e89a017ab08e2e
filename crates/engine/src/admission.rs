//! Admission control: bounds the calls running and waiting for one model, which bounds the memory of the queue.

use std::sync::atomic::{AtomicUsize, Ordering};

use calls::CallError;

use crate::config::Config;

/// Permits for the calls of one model.
pub(crate) struct Admission {
    held: AtomicUsize,
    max: usize,
}

/// A permit, released when dropped.
pub(crate) struct Permit<'a>(&'a Admission);

impl Admission {
    /// Permits for running and waiting calls.
    pub fn new(config: Config) -> Admission {
        Admission { held: AtomicUsize::new(0), max: config.max_running.saturating_add(config.max_waiting) }
    }

    /// # Errors
    /// [`CallError::Overloaded`] if none is free.
    pub fn acquire(&self) -> Result<Permit<'_>, CallError> {
        let more = |held: usize| (held < self.max).then_some(held + 1);
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Permit(self)),
            Err(held) => Err(CallError::Overloaded { queued: held }),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}
