//! Log-probabilities of output tokens.

use calls::TokenLogprob;
use models::Tokenizer;

/// The distribution of one row of logits, before any mask.
pub(crate) struct Row {
    /// As [`log_sum`].
    log_sum: f64,
    top: Vec<(u32, f32)>,
}

impl Row {
    /// Reads all logits and keeps the `top` most likely tokens that have a probability; ties in the order of ids.
    pub fn read(logits: &[f32], top: usize) -> Row {
        let top = if top == 0 { Vec::new() } else { most_likely(logits, top) };
        Row { log_sum: log_sum(logits), top }
    }

    /// The log-probabilities at a token of the reply with this logit.
    pub fn of(&self, token: u32, logit: f32, drawn: bool, tokenizer: &Tokenizer) -> TokenLogprob {
        let bytes = |token| tokenizer.bytes(token).to_vec();
        let top = self.top.iter().map(|(token, logit)| (bytes(*token), self.logprob(*logit))).collect();
        TokenLogprob { id: Some(token), bytes: bytes(token), logprob: self.logprob(logit), drawn, top }
    }

    fn logprob(&self, logit: f32) -> f32 {
        (f64::from(logit) - self.log_sum) as f32
    }
}

/// The `top` tokens with the highest logits, at least one; -inf is no probability.
fn most_likely(logits: &[f32], top: usize) -> Vec<(u32, f32)> {
    let ranked = (0..).zip(logits.iter().copied());
    let mut ranked: Vec<(u32, f32)> = ranked.filter(|(_, logit)| *logit > f32::NEG_INFINITY).collect();
    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if top < ranked.len() {
        ranked.select_nth_unstable_by(top, order);
        ranked.truncate(top);
    }
    ranked.sort_unstable_by(order);
    ranked
}

/// Logarithm of the sum of the exponentials of all logits.
pub(crate) fn log_sum(logits: &[f32]) -> f64 {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - highest).exp()).sum();
    f64::from(highest) + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn probabilities_sum_to_one_and_the_likeliest_come_first() {
        let logits = [1.0f32, 3.0, -2.0, 3.0, f32::NEG_INFINITY];
        let row = Row::read(&logits, 3);
        assert_eq!(row.top.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [1, 3, 0]);
        let sum: f32 = logits.iter().map(|logit| row.logprob(*logit).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        assert!(Row::read(&logits, 0).top.is_empty());
        assert_eq!(Row::read(&logits, 9).top.len(), 4);
    }
}
