//! Embedding of texts; it can yield between half layers so that streamed replies are not delayed.

use std::collections::VecDeque;
use std::time::Instant;

use calls::{CallError, Embedding};
use candle_core::Tensor;
use models::{EncoderNetwork, Heads, Pass, Pooling, Representation, represent};
use tokio::sync::oneshot;

use crate::catch_panic::catch_panic;

/// Maximum tokens of one pass through the encoder.
const PASS_TOKENS: usize = 1024;
/// The same while replies are streamed: a pass yields between half layers, which must then be short.
const SHORT_PASS_TOKENS: usize = 256;

/// Tokenised texts to embed, and the channel for the result.
pub(crate) struct EmbeddingJob {
    pub sequences: VecDeque<Vec<u32>>,
    pub heads: calls::Heads,
    pub reply: oneshot::Sender<Result<Vec<Embedding>, CallError>>,
}

/// An embedding model without its tokenizer, which the callers' threads use.
pub(crate) struct EncoderParts {
    pub network: Box<dyn EncoderNetwork>,
    pub pooling: Pooling,
    pub heads: Option<Heads>,
    pub specials: Vec<u32>,
}

/// The encoder and its queue.
pub(crate) struct EmbeddingQueue {
    model: EncoderParts,
    jobs: VecDeque<Running>,
}

/// A job and its progress.
struct Running {
    job: EmbeddingJob,
    vectors: Vec<Embedding>,
    /// Sequences in progress through the layers.
    pass: Option<(Vec<Vec<u32>>, Pass)>,
}

impl EmbeddingQueue {
    pub fn new(model: EncoderParts) -> EmbeddingQueue {
        EmbeddingQueue { model, jobs: VecDeque::new() }
    }

    pub fn push(&mut self, job: EmbeddingJob) {
        let vectors = Vec::with_capacity(job.sequences.len());
        self.jobs.push_back(Running { job, vectors, pass: None });
    }

    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Works on the oldest job: for one pass, or until a deadline and at least for half a layer.
    pub fn step(&mut self, until: Option<Instant>) {
        let Some(mut running) = self.jobs.pop_front() else { return };
        if running.job.reply.is_closed() {
            return;
        }
        match catch_panic(|| self.model.advance(&mut running, until)) {
            Ok(()) if running.pass.is_none() && running.job.sequences.is_empty() => {
                let _ = running.job.reply.send(Ok(running.vectors));
            }
            Ok(()) => self.jobs.push_front(running),
            Err(reason) => {
                let _ = running.job.reply.send(Err(CallError::Failed { step: "embed", reason }));
            }
        }
    }
}

impl EncoderParts {
    fn advance(&self, running: &mut Running, until: Option<Instant>) -> models::Result<()> {
        let tokens = if until.is_some() { SHORT_PASS_TOKENS } else { PASS_TOKENS };
        if running.pass.is_none() {
            let sequences = next_sequences(&mut running.job.sequences, tokens);
            let pass = self.network.begin(&sequences)?;
            running.pass = Some((sequences, pass));
        }
        while let Some((sequences, pass)) = &mut running.pass {
            if let Some(hidden) = self.network.advance(pass)? {
                running.vectors.extend(self.representations(sequences, &hidden, running.job.heads)?);
                running.pass = None;
            } else if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
        }
        Ok(())
    }

    /// The representations from the hidden states `[N, H]` of some sequences.
    fn representations(
        &self,
        sequences: &[Vec<u32>],
        hidden: &Tensor,
        heads: calls::Heads,
    ) -> models::Result<Vec<Embedding>> {
        let heads = self.heads.as_ref().filter(|_| heads == calls::Heads::All);
        let said = represent(hidden, sequences, self.pooling, heads, &self.specials)?.into_iter();
        let embedding =
            |said: Representation| Embedding { dense: said.dense, sparse: said.sparse, colbert: said.colbert };
        Ok(said.map(embedding).collect())
    }
}

/// Takes sequences up to a total number of tokens, and at least one.
fn next_sequences(waiting: &mut VecDeque<Vec<u32>>, most_tokens: usize) -> Vec<Vec<u32>> {
    let mut taken = Vec::new();
    let mut tokens = 0;
    while let Some(sequence) = waiting.pop_front_if(|next| tokens == 0 || tokens + next.len() <= most_tokens) {
        tokens += sequence.len();
        taken.push(sequence);
    }
    taken
}
