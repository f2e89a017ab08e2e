//! Why a benchmark cannot be run.

use std::io;
use std::path::{Path, PathBuf};

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// A data set that cannot be used, a search that failed, a folder that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record of a data file that is not what it should be.
    #[error("{}: line {line}: {}{problem}", path.display(), place(field))]
    Record {
        path: PathBuf,
        /// From 1.
        line: usize,
        /// Where in the record, `context[2][0]`; empty where the record as a whole is meant.
        field: String,
        problem: String,
    },
    /// A path that is not the data of the suite.
    #[error("{}: {problem}", path.display())]
    NotTheData { path: PathBuf, problem: String },
    /// A conversation that `sources` cannot read.
    #[error(transparent)]
    Conversation(#[from] sources::SourceError),
    /// The system would not give us the file.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The results cannot be kept.
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The folder holds the results of another run.
    #[error("{} holds the results of another run", path.display())]
    Occupied { path: PathBuf },
    /// A call failed, or a text could not be embedded.
    #[error(transparent)]
    Embed(#[from] calls::CallError),
    /// A suite that needs a flag which was not given.
    #[error("the suite {suite} needs {flag} PATH")]
    Missing { suite: crate::speed::SpeedSuite, flag: &'static str },
    /// A peer that does not answer, or does other work than it was asked for.
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
    /// A engine that does not start again.
    #[error("the models cannot be loaded again")]
    Restart(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Keys and values that cannot be kept or brought back.
    #[error("keys and values were not kept and brought back: {0}")]
    Prefixes(String),
    /// A tool was asked for that compares what the embedder does not say.
    #[error("the embedder {embedder} has no head for {tool}")]
    NoHead { tool: crate::retrieval::Tool, embedder: String },
    /// A name or number in a plan that means nothing.
    #[error("{0}")]
    Plan(String),
    /// The folder's run was to do something else.
    #[error("the run in {} was begun with other settings", path.display())]
    OtherPlan { path: PathBuf },
    /// The folder's run was about other data: its answers and new ones do not belong together.
    #[error("the run in {} {problem}; begin again in another folder", path.display())]
    OtherData { path: PathBuf, problem: &'static str },
    /// A run that was published has no gold answers to be scored by.
    #[error("the run in {} was published without the texts of its data; it is scored where it was made", path.display())]
    Published { path: PathBuf },
    /// A replay needs something that the run did not write down.
    #[error("{what} is not on the tape of this run")]
    NotOnTape { what: String },
    /// Two runs that answer nothing in common.
    #[error("the runs have nothing to compare: {problem}")]
    NotComparable { problem: String },
    /// A corpus that cannot be opened.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A picture that cannot be drawn.
    #[error("cannot draw {}: {problem}", path.display())]
    Draw { path: PathBuf, problem: String },
    /// A tool that compares vectors was asked for without an embedder.
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
