//! The bounded queue: so many requests are answered at once, and the next is told to come again.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::App;
use crate::body::Body;
use crate::error::{Result, ServerError};

/// Places for requests that models work on.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    most: usize,
}

/// One place, held until the answer has been sent.
#[derive(Debug)]
pub(crate) struct Place {
    _held: OwnedSemaphorePermit,
}

impl Gate {
    pub fn new(most: usize) -> Gate {
        Gate { places: Arc::new(Semaphore::new(most)), most }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`ServerError::Busy`] at once if there is none.
    pub fn enter(&self) -> Result<Place> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map(|held| Place { _held: held }).map_err(|_| ServerError::Busy { running: self.most })
    }
}

/// A JSON body and a place, which is taken once the body is there: a client that sends slowly keeps nobody out.
pub(crate) struct Admitted<T>(pub T, pub Place);

impl<T: DeserializeOwned> FromRequest<App> for Admitted<T> {
    type Rejection = ServerError;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let Body(body) = Body::from_request(request, app).await?;
        Ok(Admitted(body, app.gate.enter()?))
    }
}
