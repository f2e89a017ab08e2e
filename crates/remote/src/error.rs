//! Errors that make an endpoint unusable. Errors of a single call are [`calls::CallError`]s.

use calls::CallError;

/// A setup that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The input is not an address of an endpoint.
    #[error("this is no address of an endpoint: {problem}")]
    Address { problem: String },
    /// The endpoint has no model of this name.
    #[error("{url} has no model `{model}`; it has {}", listed(known))]
    UnknownModel { url: String, model: String, known: Vec<String> },
    /// Neither the endpoint nor the user gives the length of the context.
    #[error("{url} does not say how many tokens the context of {model} holds")]
    UnknownContext { url: String, model: String },
    /// The system provides no sockets or threads.
    #[error("requests cannot be sent: {0}")]
    System(String),
    /// The endpoint does not answer, or rejects the request.
    #[error(transparent)]
    Call(#[from] CallError),
}

fn listed(models: &[String]) -> String {
    if models.is_empty() { "none".to_owned() } else { models.join(", ") }
}
