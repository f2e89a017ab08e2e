//! Errors of preparing a corpus and answering from it.

use calls::CallError;

/// What can go wrong between a question and its answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The question is blank.
    #[error("the question is empty")]
    EmptyQuestion,
    /// The corpus has no pages.
    #[error("corpus {corpus} holds no documents")]
    EmptyCorpus { corpus: String },
    /// The corpus is not prepared for the method.
    #[error("{pending} of {pages} pages of corpus {corpus} are not ready for {method}")]
    NotReady {
        corpus: String,
        pending: usize,
        pages: usize,
        /// The name of the method.
        method: &'static str,
        /// The flags with which `ingest` prepares it, beside the method's name.
        flags: String,
    },
    /// A search by meaning found pages without vectors.
    #[error("{pending} of {pages} pages of corpus {corpus} have no vectors")]
    NoVectors { corpus: String, pending: usize, pages: usize },
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
