//! Penalties and biases of one reply: which tokens' logits change, and how often each token occurred.

use std::sync::Arc;

use calls::Sampling;
use models::sample::Adjustment;

/// The adjustments of the next token, ascending by token.
#[derive(Debug)]
pub(crate) struct Adjustments {
    /// True if tokens of the reply are penalised.
    counts_reply: bool,
    all: Arc<Vec<Adjustment>>,
}

impl Adjustments {
    /// Those of the first token of a reply to a prompt.
    pub fn new(sampling: &Sampling, prompt: &[u32]) -> Adjustments {
        let repeats = sampling.repetition_penalty != 1.0;
        let counts_reply = repeats || sampling.frequency_penalty != 0.0 || sampling.presence_penalty != 0.0;
        let bias = |(token, bias): (&u32, &f32)| Adjustment { token: *token, count: 0, seen: false, bias: *bias };
        let mut all: Vec<Adjustment> = sampling.logit_bias.iter().map(bias).collect();
        if repeats {
            let mut seen = prompt.to_vec();
            seen.sort_unstable();
            seen.dedup();
            seen.into_iter().for_each(|token| entry(&mut all, token).seen = true);
        }
        Adjustments { counts_reply, all: Arc::new(all) }
    }

    /// Whether the tokens of the reply matter.
    pub fn counts_reply(&self) -> bool {
        self.counts_reply
    }

    /// Counts a token of the reply.
    pub fn push(&mut self, token: u32) {
        if self.counts_reply {
            count(Arc::make_mut(&mut self.all), token);
        }
    }

    /// The adjustments after further tokens of the reply.
    pub fn after(&self, tokens: &[u32]) -> Arc<Vec<Adjustment>> {
        if tokens.is_empty() || !self.counts_reply {
            return Arc::clone(&self.all);
        }
        let mut all = Vec::clone(&self.all);
        tokens.iter().for_each(|token| count(&mut all, *token));
        Arc::new(all)
    }
}

fn count(all: &mut Vec<Adjustment>, token: u32) {
    let entry = entry(all, token);
    entry.count += 1;
    entry.seen = true;
}

fn entry(all: &mut Vec<Adjustment>, token: u32) -> &mut Adjustment {
    let index = match all.binary_search_by_key(&token, |adjustment| adjustment.token) {
        Ok(index) => index,
        Err(index) => {
            all.insert(index, Adjustment { token, count: 0, seen: false, bias: 0.0 });
            index
        }
    };
    &mut all[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(adjustments: &[Adjustment]) -> Vec<(u32, u32, bool, f32)> {
        adjustments.iter().map(|a| (a.token, a.count, a.seen, a.bias)).collect()
    }

    #[test]
    fn tokens_are_counted_only_where_a_penalty_needs_them() {
        let mut bias = Adjustments::new(&Sampling { logit_bias: [(7, 1.5)].into(), ..Sampling::GREEDY }, &[1, 7]);
        bias.push(7);
        assert_eq!(listed(&bias.after(&[7, 8])), [(7, 0, false, 1.5)]);
        let frequency = Sampling { frequency_penalty: 0.1, ..Sampling::GREEDY };
        let mut reply = Adjustments::new(&frequency, &[1, 7]);
        reply.push(9);
        reply.push(2);
        reply.push(9);
        assert_eq!(listed(&reply.after(&[])), [(2, 1, true, 0.0), (9, 2, true, 0.0)]);
        let repetition = Sampling { repetition_penalty: 1.1, logit_bias: [(7, 1.0)].into(), ..Sampling::GREEDY };
        let mut all = Adjustments::new(&repetition, &[7, 1, 7]);
        all.push(1);
        assert_eq!(listed(&all.after(&[])), [(1, 1, true, 0.0), (7, 0, true, 1.0)]);
    }

    #[test]
    fn drafts_count_for_the_rows_after_them_only() {
        let mut adjustments = Adjustments::new(&Sampling { presence_penalty: 1.0, ..Sampling::GREEDY }, &[]);
        adjustments.push(5);
        assert_eq!(listed(&adjustments.after(&[5, 3])), [(3, 1, true, 0.0), (5, 2, true, 0.0)]);
        assert_eq!(listed(&adjustments.after(&[])), [(5, 1, true, 0.0)]);
    }
}
