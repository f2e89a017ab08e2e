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
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    most: usize,
}

/// Permission for one request, held until its response has been sent.
#[derive(Debug)]
pub(crate) struct Place {
    _held: OwnedSemaphorePermit,
}

impl Gate {
    pub fn new(most: usize) -> Gate {
        Gate { places: Arc::new(Semaphore::new(most)), most }
    }

    /// Acquires a permit.
    ///
    /// # Errors
    /// [`ServerError::Busy`] at once if none is free.
    pub fn enter(&self) -> Result<Place> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map(|held| Place { _held: held }).map_err(|_| ServerError::Busy { running: self.most })
    }
}

/// A JSON body with a permit, which is acquired after the body has arrived: a slow client blocks no others.
pub(crate) struct Admitted<T>(pub T, pub Place);

impl<T: DeserializeOwned> FromRequest<App> for Admitted<T> {
    type Rejection = ServerError;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let Body(body) = Body::from_request(request, app).await?;
        Ok(Admitted(body, app.gate.enter()?))
    }
}
