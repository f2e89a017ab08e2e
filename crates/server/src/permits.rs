//! Admission control: bounds concurrent requests and refuses further ones at once.

use calls::{Permit, Permits, TenantId};

use crate::error::{Result, ServerError};

/// Bounds the requests that use models concurrently. Permits are held until the response has been sent.
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
