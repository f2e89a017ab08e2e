//! The errors of a training run.

use std::path::{Path, PathBuf};

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
    /// The folder holds a run with other settings.
    #[error("{} belongs to another run: {what} differs", path.display())]
    OtherRun { path: PathBuf, what: String },
    /// A checkpoint is damaged.
    #[error("{} is no usable checkpoint: {reason}", path.display())]
    Checkpoint { path: PathBuf, reason: String },
    /// Training has diverged.
    #[error("step {step} has diverged: its loss is {loss}, and the norm of its gradients {norm}")]
    Diverged { step: usize, loss: f32, norm: f32 },
    /// Replies cannot be sampled.
    #[error("cannot sample replies: {0}")]
    Rollout(String),
    /// The base model.
    #[error(transparent)]
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
                "a line is {\"messages\": [{\"role\", \"content\"}, ...]} that ends with an assistant's turn, or {\"prompt\", \"completion\"}",
            ),
            TrainError::OtherRun { .. } => Some("give the run another folder, or the settings and data it began with"),
            TrainError::Diverged { .. } => Some("lower the learning rate; the last checkpoint is kept"),
            TrainError::Checkpoint { .. } => Some("remove the file to begin again"),
            _ => None,
        }
    }
}

/// An error about a path.
pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> TrainError {
    move |source| TrainError::Io { path: path.to_owned(), source }
}
