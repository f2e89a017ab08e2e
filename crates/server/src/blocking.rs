//! Runs blocking work off the async threads; an open corpus is not `Sync`, so work on it gets a thread of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use futures_util::future::{Either, ready};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::error::{Result, ServerError};

/// Runs work on a new thread until it ends or its result is no longer awaited; then its future is dropped, which
/// cancels its calls.
pub(crate) async fn run_on_thread<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>>,
{
    let (mut sender, receiver) = oneshot::channel();
    let runtime = Builder::new_current_thread().enable_time().build().map_err(ServerError::Thread)?;
    let body = move || {
        runtime.block_on(async move {
            tokio::select! {
                () = sender.closed() => {}
                outcome = work() => { let _ = sender.send(outcome); }
            }
        });
    };
    thread::Builder::new().name("corpus".into()).spawn(body).map_err(ServerError::Thread)?;
    receiver.await.map_err(|_| ServerError::Worker("its thread has panicked".into()))?
}

/// Polls work once on a blocking thread and returns the rest of it: what runs before its first await, such as
/// tokenising, would block the async threads.
pub(crate) async fn start_blocking<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<impl Future<Output = T>> {
    let mut work = Box::pin(work);
    run_blocking(move || {
        // A no-op waker is enough: the caller polls the returned future again.
        Ok(match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Either::Left(ready(outcome)),
            Poll::Pending => Either::Right(work),
        })
    })
    .await
}

/// Runs a short blocking task: disk access or computation.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let outcome = Arc::new(Mutex::new(None));
    let place = Arc::clone(&outcome);
    run_boxed(Box::new(move || *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(work()))).await?;
    let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome.unwrap_or_else(|| Err(ServerError::Worker("it has no outcome".into())))
}

/// One type of tasks for all work: tokio compiles 8 kB for each.
async fn run_boxed(work: Box<dyn FnOnce() + Send>) -> Result<()> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ServerError::Worker(error.to_string()))
}
