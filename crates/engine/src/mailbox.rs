//! What the engine's thread can be asked.

use scheduler::SequenceId;

use crate::embedding::EmbeddingJob;
use crate::generation::Submission;

/// A message to the engine's thread.
pub(crate) enum Message {
    /// Write an answer with the model of this index.
    Submit { model: usize, id: SequenceId, submission: Box<Submission> },
    /// Give up an answer.
    Cancel { model: usize, id: SequenceId },
    /// Embed texts.
    Embed(EmbeddingJob),
    /// Answer what has been asked for and stop.
    Shutdown,
}
