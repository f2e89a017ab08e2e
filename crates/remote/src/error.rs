//! Why an endpoint cannot be used at all. What goes wrong with a single call is a [`calls::CallError`].

use calls::CallError;

/// A setup that does not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// What was typed is no address of an endpoint.
    #[error("this is no address of an endpoint: {problem}")]
    Address { problem: String },
    /// The endpoint has no model of this name.
    #[error("{url} has no model `{model}`; it has {}", listed(known))]
    UnknownModel { url: String, model: String, known: Vec<String> },
    /// Neither the endpoint nor the user says how much a prompt may hold.
    #[error("{url} does not say how many tokens the context of {model} holds")]
    UnknownContext { url: String, model: String },
    /// The system gives no sockets or threads.
    #[error("requests cannot be sent: {0}")]
    System(String),
    /// The endpoint does not answer, or refuses to.
    #[error(transparent)]
    Call(#[from] CallError),
}

fn listed(models: &[String]) -> String {
    if models.is_empty() { "none".to_owned() } else { models.join(", ") }
}
