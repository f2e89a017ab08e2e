//! Limits of the rows that a step computes beyond one for each reply: draft tokens, and known tokens whose log-probabilities
//! are returned.

use crate::config::Config;

/// Maximum bytes of the logits of known tokens in one step. Each row of them is copied once to be read.
const KNOWN_LOGITS_BYTES: usize = 128 << 20;

/// The limits of one model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepLimits {
    /// Draft tokens of all sequences together.
    draft_tokens: usize,
    /// Known tokens of all replies together.
    known_tokens: usize,
    /// If a grammar allows at most this many tokens, only their logits are computed.
    pub masked_outputs: usize,
}

/// Maximum tokens of one reply that the next step computes beside its newest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DraftLimits {
    /// Tokens found by prompt lookup, which may be wrong.
    pub found: usize,
    /// Tokens that are known, of which all logits are read for their log-probabilities.
    pub known: usize,
}

impl StepLimits {
    /// The limits of a model with `vocab` logits in a row.
    pub fn new(config: &Config, vocab: usize) -> StepLimits {
        let Config { max_draft_tokens: draft_tokens, masked_outputs, .. } = *config;
        let known_tokens = if draft_tokens == 0 { 0 } else { KNOWN_LOGITS_BYTES / (size_of::<f32>() * vocab) };
        StepLimits { draft_tokens, known_tokens, masked_outputs }
    }

    /// The share of each reply after a step of this many sequences, while `running` run.
    pub fn drafts(&self, sequences: usize, running: usize) -> DraftLimits {
        DraftLimits { found: self.draft_tokens / sequences.max(1), known: self.known_tokens / running.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logits_of_known_tokens_are_bounded_in_memory_however_many_replies_run() {
        let vocab = 151_936;
        let limits = StepLimits::new(&Config::default(), vocab);
        assert_eq!(limits.drafts(2, 12), DraftLimits { found: 4, known: 18 });
        for running in 1..=64 {
            let DraftLimits { found, known } = limits.drafts(running, running);
            assert!(running * known * vocab * size_of::<f32>() <= KNOWN_LOGITS_BYTES);
            assert!(running * found <= 8 && known >= 3, "{running} run: {found} and {known}");
        }
        let without_drafts = Config { max_draft_tokens: 0, ..Config::default() };
        assert_eq!(StepLimits::new(&without_drafts, vocab).drafts(1, 1), DraftLimits::default());
    }
}
