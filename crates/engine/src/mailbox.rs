//! What the engine's thread can be asked.

use std::path::PathBuf;
use std::time::Instant;

use calls::WorkflowId;
use scheduler::{Namespace, PinId, SequenceId};
use tokio::sync::oneshot;

use crate::embedding::EmbeddingJob;
use crate::generation::Submission;
use crate::scoring::ScoreJob;
use crate::snapshot::{Saved, SnapshotError};

/// A message to the engine's thread; `model` is an index.
pub(crate) enum Message {
    /// Write an answer.
    Submit { model: usize, id: SequenceId, namespace: Namespace, submission: Box<Submission> },
    /// Read given tokens.
    Score { model: usize, id: SequenceId, job: Box<ScoreJob> },
    /// Cancel an answer or a score.
    Cancel { model: usize, id: SequenceId },
    /// A workflow has made its last call.
    CloseWorkflow(WorkflowId),
    /// Keep what is cached of a prefix in a namespace; says of how many tokens.
    Pin {
        model: usize,
        id: PinId,
        namespace: Namespace,
        prefix: Vec<u32>,
        until: Instant,
        reply: oneshot::Sender<usize>,
    },
    /// Let a prefix go.
    Unpin { model: usize, id: PinId },
    /// Save what the prompts of a workflow begin with, if it is new; says of how many tokens.
    Save {
        model: usize,
        namespace: Namespace,
        workflow: WorkflowId,
        identity: String,
        path: PathBuf,
        reply: oneshot::Sender<Result<usize, SnapshotError>>,
    },
    /// Bring it back; says of how many tokens.
    Load { model: usize, namespace: Namespace, saved: Saved, reply: oneshot::Sender<Result<usize, SnapshotError>> },
    /// Embed texts.
    Embed(EmbeddingJob),
    /// Answer what has been asked for and stop.
    Shutdown,
}
