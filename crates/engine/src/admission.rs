//! Admission control: bounds the calls running and waiting for one model, which bounds the memory of the queue.

use calls::{CallError, Permit, Permits, TenantId};

use crate::config::Config;

/// Permits for the calls of one model.
pub(crate) struct Admission(Permits);

impl Admission {
    /// Permits for running and waiting calls.
    pub fn new(config: Config) -> Admission {
        Admission(Permits::new(config.max_running.saturating_add(config.max_waiting)))
    }

    /// # Errors
    /// [`CallError::Overloaded`], with the number of permits that the tenant holds, if none is free for it.
    pub fn acquire(&self, tenant: TenantId) -> Result<Permit, CallError> {
        self.0.acquire(tenant).map_err(|queued| CallError::Overloaded { queued })
    }
}
