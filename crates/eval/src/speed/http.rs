//! The HTTP client of load generators.

use std::time::Duration;

use ureq::Agent;

/// The limit on a request, its answer included: a server that hangs has failed.
pub(super) const TIMEOUT: Duration = Duration::from_mins(10);

/// A client whose requests end after a time. Some servers close the connection after a stream: every request has its own
/// connection, on both sides.
pub(super) fn agent(timeout: Duration) -> Agent {
    let config = Agent::config_builder().http_status_as_error(false).proxy(None).max_idle_connections(0);
    config.timeout_global(Some(timeout)).build().new_agent()
}
