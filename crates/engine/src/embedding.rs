//! Vectors of texts: some hundred tokens at a time, so that nobody who writes waits long.

use std::collections::VecDeque;
use std::ops::Range;

use calls::{CallError, Embedding, Wanted};
use models::{Encoder, Heads, Pooling, ranges, represent};
use tokio::sync::oneshot;

/// Tokens of one pass through the encoder.
const PASS_TOKENS: usize = 1024;

/// Texts to embed, as tokens, and whom to tell.
pub(crate) struct EmbeddingJob {
    pub sequences: VecDeque<Vec<u32>>,
    pub wanted: Wanted,
    pub reply: oneshot::Sender<Result<Vec<Embedding>, CallError>>,
}

/// An embedding model without its tokenizer, which stays with the callers.
pub(crate) struct EncoderParts {
    pub network: Encoder,
    pub pooling: Pooling,
    pub heads: Option<Heads>,
    pub specials: Vec<u32>,
}

/// The encoder and what waits for it.
pub(crate) struct EmbeddingQueue {
    model: EncoderParts,
    jobs: VecDeque<(EmbeddingJob, Vec<Embedding>)>,
}

impl EmbeddingQueue {
    pub fn new(model: EncoderParts) -> EmbeddingQueue {
        EmbeddingQueue { model, jobs: VecDeque::new() }
    }

    pub fn push(&mut self, job: EmbeddingJob) {
        let vectors = Vec::with_capacity(job.sequences.len());
        self.jobs.push_back((job, vectors));
    }

    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Runs one pass for the oldest job.
    pub fn step(&mut self) {
        let Some((mut job, mut vectors)) = self.jobs.pop_front() else { return };
        if job.reply.is_closed() {
            return;
        }
        let mut pass = Vec::new();
        let mut tokens = 0;
        while let Some(sequence) = job.sequences.pop_front_if(|next| tokens == 0 || tokens + next.len() <= PASS_TOKENS)
        {
            tokens += sequence.len();
            pass.push(sequence);
        }
        match self.embed(&pass, job.wanted) {
            Ok(done) => vectors.extend(done),
            Err(error) => {
                let reason = error.to_string();
                let _ = job.reply.send(Err(CallError::Failed { step: "embed", reason }));
                return;
            }
        }
        if job.sequences.is_empty() {
            let _ = job.reply.send(Ok(vectors));
        } else {
            self.jobs.push_front((job, vectors));
        }
    }

    fn embed(&self, sequences: &[Vec<u32>], wanted: Wanted) -> models::Result<Vec<Embedding>> {
        let hidden = self.model.network.forward(sequences)?; // [N, H]
        let heads = self.model.heads.as_ref().filter(|_| wanted == Wanted::All);
        let texts = sequences.iter().zip(ranges(sequences));
        let say = |(tokens, range): (&Vec<u32>, Range<usize>)| {
            let hidden = hidden.narrow(0, range.start, range.len())?; // [T, H]
            let said = represent(&hidden, tokens, self.model.pooling, heads, &self.model.specials)?;
            Ok(Embedding { dense: said.dense, sparse: said.sparse, colbert: said.colbert })
        };
        texts.map(say).collect()
    }
}
