//! Work on a corpus: on a thread of its own, because an open corpus stays on one thread.

use std::task::{Context, Poll, Waker};
use std::thread;

use futures_util::future::{Either, ready};
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

/// Begins work on a thread that may be kept busy, and gives what is left of it: what comes before its first wait, such as
/// tokenising, would keep the sockets waiting.
pub(crate) async fn begin_aside<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<impl Future<Output = T>> {
    let mut work = Box::pin(work);
    on_disk(move || {
        // Nobody need be woken: the work is asked again by who waits for it.
        Ok(match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Either::Left(ready(outcome)),
            Poll::Pending => Either::Right(work),
        })
    })
    .await
}

/// Runs a short piece of work that waits for the disk or computes for a while.
pub(crate) async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ServerError::Worker(error.to_string()))?
}
