//! Messages to the engine's thread.

use calls::WorkflowId;
use scheduler::{Namespace, SequenceId};
use tokio::sync::oneshot;

use crate::embedding::EmbeddingJob;
use crate::model_runner::ModelRunner;
use crate::scoring::ScoreJob;
use crate::snapshot::{CopiedPages, Saved, SnapshotError};
use crate::submission::Submission;

/// A message to the engine's thread; `model` is an index.
pub(crate) enum Message {
    /// Generate a reply.
    Submit { model: usize, id: SequenceId, namespace: Namespace, submission: Box<Submission> },
    /// Score given tokens.
    Score { model: usize, id: SequenceId, job: Box<ScoreJob> },
    /// Cancel a generation or a score.
    Cancel { model: usize, id: SequenceId },
    /// A workflow has issued its last call.
    CloseWorkflow(WorkflowId),
    /// List the pages of the prefixes that the prompts of a workflow begin with, and copy some of them, from this place of the list on;
    /// none if no page is new.
    CopyPages {
        model: usize,
        namespace: Namespace,
        workflow: WorkflowId,
        from: usize,
        reply: oneshot::Sender<Result<Option<CopiedPages>, SnapshotError>>,
    },
    /// Restore a snapshot; the reply is the number of tokens.
    Load { model: usize, namespace: Namespace, saved: Saved, reply: oneshot::Sender<Result<usize, SnapshotError>> },
    /// Drop the weights and KV cache of a model; the reply is false if calls of it run.
    Unload { model: usize, reply: oneshot::Sender<bool> },
    /// Run a model again that was unloaded.
    LoadAgain { model: usize, runner: Box<ModelRunner>, reply: oneshot::Sender<()> },
    /// Embed texts.
    Embed(EmbeddingJob),
    /// Finish submitted work and stop.
    Shutdown,
}
