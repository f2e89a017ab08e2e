//! Why nothing was remembered or answered.

use calls::CallError;

use crate::settings::Settings;

/// What can go wrong between a question and its answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is nothing to answer.
    #[error("the question is empty")]
    EmptyQuestion,
    /// There is nothing to answer from.
    #[error("corpus {corpus} holds no documents")]
    EmptyCorpus { corpus: String },
    /// What the method of these settings works from has not all been made yet.
    #[error("{pending} of {pages} pages of corpus {corpus} are not ready for {}", settings.method)]
    NotReady { corpus: String, pending: usize, pages: usize, settings: Box<Settings> },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The trace cannot be written.
    #[error("the trace cannot be written")]
    Trace(#[source] std::io::Error),
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, MemoryError>;
