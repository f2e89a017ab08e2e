//! The bounded queue: so many requests are answered at once, and the next is told to come again.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::App;
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

impl FromRequestParts<App> for Place {
    type Rejection = ServerError;

    async fn from_request_parts(_: &mut Parts, app: &App) -> Result<Self> {
        app.gate.enter()
    }
}
