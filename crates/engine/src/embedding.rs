//! Vectors of texts: some hundred tokens at a time, so that nobody who writes waits long.

use std::collections::VecDeque;

use calls::CallError;
use models::{Encoder, Pooling, ranges};
use tokio::sync::oneshot;

/// Tokens of one pass through the encoder.
const PASS_TOKENS: usize = 1024;

/// Texts to embed, as tokens, and whom to tell.
pub(crate) struct EmbeddingJob {
    pub sequences: VecDeque<Vec<u32>>,
    pub reply: oneshot::Sender<Result<Vec<Vec<f32>>, CallError>>,
}

/// The encoder and what waits for it.
pub(crate) struct EmbeddingQueue {
    network: Encoder,
    pooling: Pooling,
    jobs: VecDeque<(EmbeddingJob, Vec<Vec<f32>>)>,
}

impl EmbeddingQueue {
    pub fn new(network: Encoder, pooling: Pooling) -> EmbeddingQueue {
        EmbeddingQueue { network, pooling, jobs: VecDeque::new() }
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
        match self.embed(&pass) {
            Ok(done) => vectors.extend(done),
            Err(reason) => {
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

    fn embed(&self, sequences: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, String> {
        let hidden = self.network.forward(sequences).and_then(|hidden| Ok(hidden.to_vec2::<f32>()?));
        let hidden = hidden.map_err(|error| error.to_string())?; // [N][H]
        ranges(sequences).into_iter().map(|range| pool(&hidden[range], self.pooling)).collect()
    }
}

/// The L2-normalised vector of a text from the hidden states of its tokens.
fn pool(rows: &[Vec<f32>], pooling: Pooling) -> Result<Vec<f32>, String> {
    let mut vector = rows.first().cloned().ok_or("a text without tokens")?;
    if pooling == Pooling::Mean {
        for row in &rows[1..] {
            vector.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    }
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !norm.is_finite() || norm == 0.0 {
        return Err("the embedding is not a number".into());
    }
    vector.iter_mut().for_each(|x| *x /= norm);
    Ok(vector)
}
