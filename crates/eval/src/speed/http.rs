//! What the load generators share: their HTTP client, and what servers report of an answer.

use std::time::Duration;

use serde::Deserialize;
use ureq::Agent;

/// The limit on a request, its answer included: a server that hangs has failed.
pub(super) const TIMEOUT: Duration = Duration::from_mins(10);

/// A client whose requests end after a time. Some servers close the connection after a stream: every request has its own
/// connection, on both sides.
pub(super) fn agent(timeout: Duration) -> Agent {
    let config = Agent::config_builder().http_status_as_error(false).proxy(None).max_idle_connections(0);
    config.timeout_global(Some(timeout)).build().new_agent()
}

/// The address of a server without what its URL may have at the end: a slash or `/v1`.
pub(super) fn address(url: &str) -> String {
    url.trim_end_matches('/').trim_end_matches("/v1").to_owned()
}

/// The tokens of an answer.
#[derive(Deserialize)]
pub(super) struct Usage {
    pub prompt_tokens: usize,
    pub completion_tokens: usize,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: usize,
}

impl Usage {
    /// Prompt tokens that were in the server's cache, as far as it reports them.
    pub fn cached_tokens(&self) -> usize {
        self.prompt_tokens_details.as_ref().map_or(0, |details| details.cached_tokens)
    }
}
