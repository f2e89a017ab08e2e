//! Why a model cannot be loaded or run.

use std::io;
use std::path::PathBuf;

/// What can go wrong between a file on disk and logits.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The operating system refused.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is none that holds a model, or it is damaged.
    #[error("{} is no usable model file: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    /// Something is computed with a part of a network that does not have it.
    #[error("this part of the network has no {what}")]
    NotInPart { what: &'static str },
    /// The bundle that holds the file was altered, or cannot be read.
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    /// A folder without the files that a checkpoint needs.
    #[error("{} holds no checkpoint: {missing} is missing", path.display())]
    NotACheckpoint { path: PathBuf, missing: String },
    /// The checkpoint lacks a tensor that its network needs.
    #[error("tensor `{name}` is missing from {}", path.display())]
    MissingTensor { path: PathBuf, name: String },
    /// A tensor has another shape than its network needs.
    #[error("tensor `{name}` has shape {got:?}, but the network needs {want:?}")]
    TensorShape { name: String, got: Vec<usize>, want: Vec<usize> },
    /// Real, but not done here.
    #[error("{what} is not supported")]
    Unsupported { what: String },
    /// A tensor is stored in a type without kernel.
    #[error("tensor type {kind} of `{name}` is not supported")]
    UnsupportedTensor { name: String, kind: String },
    /// A path without the files of an adapter.
    #[error("{} holds no adapter: {missing} is missing", path.display())]
    NotAnAdapter { path: PathBuf, missing: String },
    /// The adapter was made for another model.
    #[error("the adapter does not fit the model: {reason}")]
    AdapterMisfit { reason: String },
    /// An adapter of a kind that is not computed here.
    #[error("{what} is not supported in an adapter")]
    AdapterUnsupported { what: String },
    /// A field of the configuration that would be ignored.
    #[error("the model's configuration has `{name}` = {value}, which is not supported")]
    UnusedField { name: String, value: String },
    /// Tensors of the checkpoint that would be ignored.
    #[error("{} has tensors that its network does not read: {}", path.display(), listed(names))]
    UnusedTensors { path: PathBuf, names: Vec<String> },
    /// A configuration value is missing or out of range.
    #[error("the model's configuration is unusable: {reason}")]
    Config { reason: String },
    /// The tokenizer cannot be built or used.
    #[error("the tokenizer is unusable: {reason}")]
    Tokenizer { reason: String },
    /// The chat template cannot be rendered.
    #[error("the chat template is unusable: {reason}")]
    Template { reason: String },
    /// A weight matrix is malformed.
    #[error("tensor `{name}`")]
    Matrix { name: String, source: kernels::matmul::MatrixError },
    /// The computation failed.
    #[error("computation failed")]
    Compute(#[from] candle_core::Error),
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, ModelError>;

impl ModelError {
    /// With the start of a long value only.
    pub(crate) fn unused_field(name: String, value: &impl ToString) -> Self {
        let text = value.to_string();
        let short: String = text.chars().take(80).collect();
        let value = if short.len() < text.len() { short + "..." } else { short };
        ModelError::UnusedField { name, value }
    }

    pub(crate) fn config(reason: impl Into<String>) -> Self {
        ModelError::Config { reason: reason.into() }
    }
}

/// The first names, and how many more there are.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
