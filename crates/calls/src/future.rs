//! Futures behind trait objects.

use std::future::Future;
use std::pin::Pin;

/// A boxed future, so that callers can be trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
