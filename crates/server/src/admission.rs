//! Admission control: bounds the concurrent requests that use models or read a graph, and refuses further ones at once.

pub(crate) use calls::Permit;
use calls::{Permits, TenantId};

use crate::error::{Result, ServerError};

/// Bounds concurrent requests. Permits are held until the response has been sent.
#[derive(Debug)]
pub(crate) struct Admission(Permits);

impl Admission {
    pub fn new(max: usize) -> Admission {
        Admission(Permits::new(max))
    }

    /// Acquires a permit for a request of a tenant.
    ///
    /// # Errors
    /// [`ServerError::Busy`] at once if none is free.
    pub fn acquire(&self, tenant: TenantId) -> Result<Permit> {
        self.0.acquire(tenant).map_err(|running| ServerError::Busy { running })
    }
}
