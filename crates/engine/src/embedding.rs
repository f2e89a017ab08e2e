//! Embedding of texts; it can yield between half layers so that streamed replies are not delayed.

use std::collections::VecDeque;
use std::time::Instant;

use calls::{CallError, Embedding, TenantId};
use candle_core::Tensor;
use models::{EncoderNetwork, Heads, Pass, Pooling, Representation, represent};
use scheduler::TokenCounters;
use tokio::sync::oneshot;

use crate::catch_panic::catch_panic;

/// Tokenised texts to embed, and the channel for the result.
pub(crate) struct EmbeddingJob {
    pub tenant: TenantId,
    pub sequences: VecDeque<Vec<u32>>,
    pub heads: calls::Heads,
    pub reply: oneshot::Sender<Result<Vec<Embedding>, CallError>>,
}

/// An embedding model without its tokenizer, which the callers' threads use.
pub(crate) struct EncoderParts {
    pub network: Box<dyn EncoderNetwork>,
    pub pooling: Pooling,
    pub heads: Option<Heads>,
    /// Ids without a lexical weight.
    pub unweighted: Vec<u32>,
}

/// The encoder and its queue.
pub(crate) struct EmbeddingQueue {
    model: EncoderParts,
    /// Maximum tokens of one pass ([`crate::Config::embedding_tokens`]).
    pass_tokens: usize,
    jobs: VecDeque<Running>,
    /// Tokens of the passes of each tenant.
    counters: TokenCounters,
}

/// A job and its progress.
struct Running {
    job: EmbeddingJob,
    vectors: Vec<Embedding>,
    /// Sequences in progress through the layers.
    pass: Option<(Vec<Vec<u32>>, Pass)>,
    /// Tokens of a pass that are not counted yet.
    begun_tokens: usize,
}

impl EmbeddingQueue {
    pub fn new(model: EncoderParts, pass_tokens: usize) -> EmbeddingQueue {
        EmbeddingQueue { model, pass_tokens, jobs: VecDeque::new(), counters: TokenCounters::default() }
    }

    pub fn push(&mut self, job: EmbeddingJob) {
        let vectors = Vec::with_capacity(job.sequences.len());
        self.jobs.push_back(Running { job, vectors, pass: None, begun_tokens: 0 });
    }

    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Works on the next job: for one pass, or until a deadline and at least for half a layer. After every pass the tenant with the
    /// fewest tokens is next, and its jobs take turns, so that a small one does not wait for all of a large one.
    pub fn step(&mut self, until: Option<Instant>) {
        let Some(mut running) = self.next() else { return };
        if running.job.reply.is_closed() {
            return;
        }
        let tokens = if until.is_some() { self.pass_tokens / 4 } else { self.pass_tokens };
        let result = catch_panic(|| self.model.advance(&mut running, tokens, until));
        self.counters.add(running.tenant(), std::mem::take(&mut running.begun_tokens));
        match result {
            Ok(()) if running.pass.is_none() && running.job.sequences.is_empty() => {
                let _ = running.job.reply.send(Ok(running.vectors));
            }
            // Other passes wait until this one is complete.
            Ok(()) if running.pass.is_some() => self.jobs.push_front(running),
            Ok(()) => self.jobs.push_back(running),
            Err(reason) => {
                let _ = running.job.reply.send(Err(CallError::Failed { step: "embed", reason }));
            }
        }
    }

    /// Takes the job whose pass is in progress, or else the first one of the tenant with the fewest tokens.
    fn next(&mut self) -> Option<Running> {
        if self.jobs.front().is_some_and(|running| running.pass.is_some()) {
            return self.jobs.pop_front();
        }
        self.counters.rebase(self.jobs.iter().map(|running| (0, running.tenant())));
        let ahead = |index: &usize| self.counters.ahead(self.jobs[*index].tenant());
        let next = (0..self.jobs.len()).min_by_key(ahead)?;
        self.jobs.remove(next)
    }
}

impl Running {
    fn tenant(&self) -> scheduler::TenantId {
        scheduler::TenantId(self.job.tenant.number())
    }
}

impl EncoderParts {
    /// Works on a pass of at most `tokens`, or of one longer sequence.
    fn advance(&self, running: &mut Running, tokens: usize, until: Option<Instant>) -> models::Result<()> {
        if running.pass.is_none() {
            let sequences = next_sequences(&mut running.job.sequences, tokens);
            let pass = self.network.begin(&sequences)?;
            running.begun_tokens = sequences.iter().map(Vec::len).sum();
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
        let said = represent(hidden, sequences, self.pooling, heads, &self.unweighted)?.into_iter();
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use candle_core::Device;
    use models::{Encoder, Spec, Weights};

    use super::*;

    const PASS_TOKENS: usize = 1024;

    /// A tiny encoder with random weights, whose passes are complete or yield after each half layer.
    fn queue() -> EmbeddingQueue {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/encoder/bert");
        let config = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        let Spec::Encoder(spec) = Spec::from_config(&config).unwrap() else { panic!("it is an encoder") };
        let network = Encoder::load(&spec, &Weights::open_folder(&folder).unwrap(), &Device::Cpu).unwrap();
        let parts =
            EncoderParts { network: Box::new(network), pooling: Pooling::Mean, heads: None, unweighted: vec![] };
        EmbeddingQueue::new(parts, PASS_TOKENS)
    }

    type Reply = oneshot::Receiver<Result<Vec<Embedding>, CallError>>;

    /// A job of a tenant's texts of 32 tokens.
    fn job_of(tenant: TenantId, texts: usize) -> (EmbeddingJob, Reply) {
        let sequences = (0..texts).map(|text| (0..32).map(|at| (text + at) as u32 % 90 + 1).collect()).collect();
        let (reply, receiver) = oneshot::channel();
        (EmbeddingJob { tenant, sequences, heads: calls::Heads::Dense, reply }, receiver)
    }

    fn job(texts: usize) -> (EmbeddingJob, Reply) {
        job_of(TenantId::LOCAL, texts)
    }

    #[test]
    fn jobs_take_turns_and_a_small_one_does_not_wait_for_all_of_a_large_one() {
        for until in [None, Some(Instant::now())] {
            let (mut queue, per_pass) = (queue(), if until.is_some() { PASS_TOKENS / 4 } else { PASS_TOKENS } / 32);
            let [(large, mut large_reply), (small, mut small_reply)] = [4 * per_pass, per_pass].map(job);
            queue.push(large);
            queue.step(until);
            queue.push(small);
            let mut passes = 0;
            while small_reply.try_recv().is_err() {
                passes += usize::from(queue.jobs.iter().all(|running| running.pass.is_none()));
                queue.step(until);
            }
            assert!(large_reply.try_recv().is_err() && passes <= 2, "{passes} passes");
            while !queue.is_idle() {
                queue.step(until);
            }
            let vectors = large_reply.try_recv().unwrap().unwrap();
            let mut alone = self::queue();
            let (large, mut reply) = job(4 * per_pass);
            alone.push(large);
            while !alone.is_idle() {
                alone.step(None);
            }
            assert_eq!(reply.try_recv().unwrap().unwrap(), vectors);
        }
    }

    #[test]
    fn tenants_get_equal_shares_of_the_passes_whatever_the_number_of_their_jobs() {
        let (mut queue, per_pass, busy) = (queue(), PASS_TOKENS / 32, TenantId::new(7));
        let large: Vec<Reply> = (0..3)
            .map(|_| {
                let (job, reply) = job_of(busy, 4 * per_pass);
                queue.push(job);
                reply
            })
            .collect();
        (0..2).for_each(|_| queue.step(None));
        let (small, mut small_reply) = job_of(TenantId::new(8), 4 * per_pass);
        queue.push(small);
        let mut passes = 0;
        while small_reply.try_recv().is_err() {
            queue.step(None);
            passes += 1;
        }
        assert!(passes <= 8, "{passes} passes for four of one tenant beside three jobs of another");
        while !queue.is_idle() {
            queue.step(None);
        }
        large.into_iter().for_each(|mut reply| assert_eq!(reply.try_recv().unwrap().unwrap().len(), 4 * per_pass));
    }
}
