//! The errors of benchmarks.

use std::io;
use std::path::{Path, PathBuf};

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// A data set that cannot be used, a search that failed, a folder that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid record of a data file.
    #[error("{}: line {line}: {}{problem}", path.display(), place(field))]
    Record {
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The position in the record, such as `context[2][0]`; empty for the record as a whole.
        field: String,
        problem: String,
    },
    /// A path that is not the data of the suite.
    #[error("{}: {problem}", path.display())]
    NotTheData { path: PathBuf, problem: String },
    /// A conversation that `sources` cannot read.
    #[error(transparent)]
    Conversation(#[from] sources::SourceError),
    /// The system could not read the file.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The results cannot be stored.
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The folder holds the results of another run.
    #[error("{} holds the results of another run", path.display())]
    Occupied { path: PathBuf },
    /// A call failed, or a text could not be embedded.
    #[error(transparent)]
    Embed(#[from] calls::CallError),
    /// A suite that needs a missing flag.
    #[error("the suite {suite} needs {flag} PATH")]
    Missing { suite: crate::speed::SpeedSuite, flag: &'static str },
    /// A peer that does not answer, or does not do the requested work.
    #[error("{url}: {problem}")]
    Peer { url: String, problem: String },
    /// A bug of ours.
    #[error("a thread panicked")]
    Panicked,
    /// A method that failed.
    #[error(transparent)]
    Memory(#[from] memory::MemoryError),
    /// A folder for a corpus that lives as long as the measurement.
    #[error("no folder for temporary files")]
    Scratch(#[source] io::Error),
    /// An engine that does not restart.
    #[error("the models cannot be loaded again")]
    Restart(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A KV cache that cannot be saved or loaded.
    #[error("keys and values were not kept and brought back: {0}")]
    Prefixes(String),
    /// A requested tool needs an output that the embedder does not have.
    #[error("the embedder {embedder} has no head for {tool}")]
    NoHead { tool: crate::retrieval::Tool, embedder: String },
    /// An unknown name or invalid number in a plan.
    #[error("{0}")]
    Plan(String),
    /// The folder's run has another plan.
    #[error("the run in {} was begun with other settings", path.display())]
    OtherPlan { path: PathBuf },
    /// The folder's run has other data: its answers cannot be combined with new ones.
    #[error("the run in {} {problem}; begin again in another folder", path.display())]
    OtherData { path: PathBuf, problem: &'static str },
    /// A published run has no gold answers to score by.
    #[error("the run in {} was published without the texts of its data; it is scored where it was made", path.display())]
    Published { path: PathBuf },
    /// A replay needs something that the run did not record.
    #[error("{what} is not on the tape of this run")]
    NotOnTape { what: String },
    /// Two runs without a common question.
    #[error("the runs have nothing to compare: {problem}")]
    NotComparable { problem: String },
    /// A corpus that cannot be opened.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A plot that cannot be drawn.
    #[error("cannot draw {}: {problem}", path.display())]
    Draw { path: PathBuf, problem: String },
    /// A requested tool compares vectors, and there is no embedder.
    #[error("no embedding model is loaded")]
    NoEmbedder,
}

impl Error {
    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Error::Read { path: path.to_owned(), source }
    }

    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Error::Write { path: path.to_owned(), source }
    }
}

fn place(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("field `{field}`: ") }
}
