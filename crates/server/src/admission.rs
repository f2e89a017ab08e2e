//! Admission control: bounds concurrent requests and refuses further ones at once.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::App;
use crate::body::Body;
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

/// A JSON body with a permit, which is acquired after the body has arrived: a slow client blocks no others.
pub(crate) struct AdmittedJson<T>(pub T, pub Permit);

impl<T: DeserializeOwned> FromRequest<App> for AdmittedJson<T> {
    type Rejection = ServerError;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let Body(body) = Body::from_request(request, app).await?;
        Ok(AdmittedJson(body, app.admission.acquire()?))
    }
}
