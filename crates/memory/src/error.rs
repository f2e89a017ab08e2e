//! Why nothing was remembered or answered.

use calls::CallError;

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
    /// Pages have not been memorised or embedded yet.
    #[error("{pending} of {pages} pages of corpus {corpus} are not ready for this method")]
    NotReady { corpus: String, pending: usize, pages: usize },
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
