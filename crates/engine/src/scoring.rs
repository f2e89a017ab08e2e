//! A sequence that scores given tokens instead of sampling.

use calls::{CallError, Priority, TenantId, WorkflowId};
use scheduler::Namespace;
use tokio::sync::oneshot;

use crate::logits::{Logits, Purpose, Wanted};
use crate::logprob::log_sum;

/// A submitted scoring job.
pub(crate) struct ScoreJob {
    pub step: &'static str,
    pub prompt: Vec<u32>,
    pub stable_tokens: usize,
    pub workflow: WorkflowId,
    pub tenant: TenantId,
    pub namespace: Namespace,
    pub priority: Priority,
    /// The index of the adapter that it runs with.
    pub adapter: Option<usize>,
    /// The tokens after the prompt, taken instead of sampled ones. One fewer than `asked`: row `i` of logits precedes
    /// token `i`.
    pub forced: Vec<u32>,
    /// For each row of logits the tokens whose log-probabilities are requested.
    pub asked: Vec<Vec<u32>>,
    /// Receives them.
    pub reply: oneshot::Sender<Result<Rows, CallError>>,
}

/// The log-probabilities that a job asked for.
#[derive(Debug)]
pub(crate) struct Rows {
    pub found: Vec<Vec<f64>>,
    /// Tokens of the prompt whose keys and values were in the prefix cache.
    pub cached_tokens: usize,
}

/// A scoring job in progress.
pub(crate) struct Scoring {
    pub job: ScoreJob,
    found: Vec<Vec<f64>>,
}

impl Scoring {
    pub fn new(job: ScoreJob) -> Scoring {
        debug_assert_eq!(job.asked.len(), job.forced.len() + 1);
        Scoring { job, found: Vec::new() }
    }

    /// The requests for the next rows of logits.
    pub fn wanted(&self, rows: usize) -> Vec<Wanted> {
        let left = self.job.asked[self.found.len()..].iter();
        let of = |asked: &Vec<u32>| match asked.is_empty() {
            true => Wanted { outputs: Some(Vec::new()), purpose: Purpose::Nothing },
            false => Wanted::default(),
        };
        left.map(of).chain(std::iter::repeat_with(Wanted::default)).take(rows).collect()
    }

    /// Processes the next row of logits; returns the token that follows it, or none after the last row.
    ///
    /// # Errors
    /// If the row is not complete.
    pub fn read(&mut self, logits: &Logits) -> Result<Option<u32>, String> {
        let row = self.found.len();
        let asked = &self.job.asked[row];
        self.found.push(match logits {
            _ if asked.is_empty() => Vec::new(),
            Logits::All(logits) => log_probabilities(logits, asked),
            Logits::Drawn(_) | Logits::Unused => return Err("the row of logits was not read".into()),
        });
        Ok(self.job.forced.get(row).copied())
    }

    /// The tokens that remain.
    pub fn ahead(&self) -> &[u32] {
        &self.job.forced[self.found.len()..]
    }

    /// Answers, once every row was read.
    pub fn answer(self, cached_tokens: usize) {
        let _ = self.job.reply.send(Ok(Rows { found: self.found, cached_tokens }));
    }
}

/// The log-softmax of these tokens, normalised over the whole vocabulary.
fn log_probabilities(logits: &[f32], tokens: &[u32]) -> Vec<f64> {
    let log_sum = log_sum(logits);
    let of = |token: &u32| logits.get(*token as usize).map_or(f64::NEG_INFINITY, |logit| f64::from(*logit) - log_sum);
    tokens.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::log_probabilities;

    #[test]
    fn probabilities_are_those_of_the_whole_softmax() {
        let logits = [1.0f32, 3.0, -2.0, 3.0, 90.0];
        let all = log_probabilities(&logits[..4], &[0, 1, 2, 3]);
        let sum: f64 = all.iter().map(|logprob| logprob.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        assert_eq!((all[1].to_bits(), all[1] - all[0]), (all[3].to_bits(), 2.0));
        assert_eq!(log_probabilities(&logits, &[7]), [f64::NEG_INFINITY], "a token beyond the vocabulary");
        assert!(log_probabilities(&[1000.0, 0.0], &[1])[0] <= -999.0, "no overflow");
    }
}
