//! The errors of a training run.

use std::path::{Path, PathBuf};

/// The setting of a run that is the number of its threads.
pub const THREADS: &str = "number of threads";

/// The setting of a run that is a digest of its tokenised examples.
pub const TOKENS: &str = "tokens of the examples";

/// An error of a training run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The operating system returned an error.
    #[error("cannot use {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// A line of a data file is unusable.
    #[error("{}, line {line}: {reason}", path.display())]
    Data { path: PathBuf, line: usize, reason: String },
    /// There is no example to train on.
    #[error("{}: {reason}", path.display())]
    NoExamples { path: PathBuf, reason: String },
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// The adapter to start from changes projections that are not trained.
    #[error("{} also changes projections that are not trained: {projections}", path.display())]
    Untrained { path: PathBuf, projections: String },
    /// The run needs more memory than it may take, in bytes.
    #[error("passes of {tokens} tokens need at least {} MiB; {} MiB are allowed", needed.div_ceil(1 << 20), allowed >> 20)]
    Memory { tokens: usize, needed: usize, allowed: usize },
    /// The folder holds a run with other settings.
    #[error("{} belongs to another run: {}", path.display(), difference(what, before, now))]
    OtherRun { path: PathBuf, what: String, before: String, now: String },
    /// Another process trains in the folder.
    #[error("another run is training in {}", folder.display())]
    Busy { folder: PathBuf },
    /// A checkpoint is damaged.
    #[error("{} is no usable checkpoint: {reason}", path.display())]
    Checkpoint { path: PathBuf, reason: String },
    /// Training has diverged.
    #[error(
        "step {step} has diverged: its loss is {loss}, the norm of its gradients {norm}, the largest weight {weight}"
    )]
    Diverged { step: usize, loss: f32, norm: f32, weight: f32 },
    /// Nothing can be learnt from rollouts.
    #[error("cannot learn from the rollouts: {reason}")]
    Rollouts { reason: String, hint: &'static str },
    /// Replies cannot be sampled.
    #[error("cannot sample replies: {0}")]
    Rollout(String),
    /// The base model; its error is a cause of its own, with a hint.
    #[error("{0}")]
    Model(#[from] models::ModelError),
    /// The computation failed.
    #[error("computation failed")]
    Compute(#[from] candle_core::Error),
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, TrainError>;

impl TrainError {
    /// A hint for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            TrainError::Data { .. } => Some(
                "a line is {\"messages\": [{\"role\", \"content\"}, ...]} that ends with an assistant's turn, or {\"prompt\", \"completion\"}; with --rollouts it is one of `memlocal-bench qa`",
            ),
            TrainError::Untrained { .. } => Some("name them in --targets too, or start from another adapter"),
            TrainError::Memory { .. } => Some("allow more with --memory, or train a smaller model"),
            TrainError::OtherRun { what, .. } if what == THREADS => {
                Some("resume with the number of threads before: --threads")
            }
            TrainError::OtherRun { what, .. } if what == TOKENS => Some(
                "the chat template or the tokenizer makes other tokens of the same data: give the run another folder",
            ),
            TrainError::OtherRun { .. } => Some("give the run another folder, or the settings and data it began with"),
            TrainError::Diverged { .. } => Some("lower the learning rate; the last checkpoint is kept"),
            TrainError::Busy { .. } => Some("wait until it has ended, or give the run another folder"),
            TrainError::Checkpoint { .. } => Some("remove the file to begin again"),
            TrainError::Rollouts { hint, .. } => Some(*hint),
            _ => None,
        }
    }
}

/// What differs between two runs; both values where they are short.
fn difference(what: &str, before: &str, now: &str) -> String {
    const SHORT: usize = 24;
    match before.len().max(now.len()) {
        0..=SHORT => format!("{what} differs ({before} before, {now} now)"),
        _ => format!("{what} differs"),
    }
}

/// An error about a path.
pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> TrainError {
    move |source| TrainError::Io { path: path.to_owned(), source }
}
