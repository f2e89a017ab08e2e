//! Work on a corpus: on a thread of its own, because an open corpus stays on one thread.

use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::error::{Result, ServerError};

/// Runs work on a new thread until it ends or nobody waits for it any more; then its calls are given up.
pub(crate) async fn on_a_thread<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>>,
{
    let (mut sender, receiver) = oneshot::channel();
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let body = move || {
        runtime.block_on(async move {
            tokio::select! {
                () = sender.closed() => {}
                outcome = work() => { let _ = sender.send(outcome); }
            }
        });
    };
    thread::Builder::new().name("corpus".into()).spawn(body)?;
    receiver.await.map_err(|_| ServerError::Worker("its thread has panicked".into()))?
}

/// Runs a short piece of work that waits for the disk.
pub(crate) async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ServerError::Worker(error.to_string()))?
}
