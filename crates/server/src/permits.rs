//! Admission control: bounds concurrent requests and refuses further ones at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Result, ServerError};

/// Bounds the requests that use models concurrently.
#[derive(Debug)]
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    max: usize,
}

/// Permission for one request, held until its response has been sent.
#[derive(Debug)]
pub(crate) struct Permit {
    _held: OwnedSemaphorePermit,
}

impl Admission {
    pub fn new(max: usize) -> Admission {
        Admission { permits: Arc::new(Semaphore::new(max)), max }
    }

    /// Acquires a permit.
    ///
    /// # Errors
    /// [`ServerError::Busy`] at once if none is free.
    pub fn acquire(&self) -> Result<Permit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.map(|held| Permit { _held: held }).map_err(|_| ServerError::Busy { running: self.max })
    }
}
