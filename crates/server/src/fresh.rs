//! Ids, random numbers and the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Result, ServerError};

/// A unique random id with this prefix; it does not reveal how many others exist.
pub(crate) fn fresh_id(prefix: &str) -> Result<String> {
    Ok(format!("{prefix}-{:016x}{:016x}", random()?, random()?))
}

/// A random number: the seed of a request without one, or the id of a workflow.
pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| ServerError::Worker(format!("no random bytes from the operating system: {error}")))
}

/// Time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
