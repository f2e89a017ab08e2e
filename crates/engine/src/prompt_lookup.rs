//! Draft tokens by prompt lookup.
//!
//! Replies of agents repeat their prompts: names, quotes, page numbers. If the last tokens occurred before, those that
//! followed them are likely to follow again (prompt lookup decoding). A draft token costs one row of a step that reads
//! the weights anyway, and is kept only if the model samples the same token, so drafts change speed and nothing else.

/// Tokens that must match before tokens are drafted.
const CONTEXT: usize = 3;

/// A growing text, and the recent acceptance of its drafts.
#[derive(Debug)]
pub(crate) struct PromptLookup {
    tokens: Vec<u32>,
    /// Maximum draft tokens at present.
    max_draft: usize,
}

impl PromptLookup {
    pub fn new(tokens: Vec<u32>) -> PromptLookup {
        PromptLookup { tokens, max_draft: 4 }
    }

    pub fn push(&mut self, token: u32) {
        self.tokens.push(token);
    }

    /// The tokens after the latest earlier occurrence of the text's last tokens; at most `most`.
    pub fn draft(&self, most: usize) -> Vec<u32> {
        let most = most.min(self.max_draft);
        let Some(start) = self.tokens.len().checked_sub(CONTEXT).filter(|_| most > 0) else { return Vec::new() };
        let (before, context) = self.tokens.split_at(start);
        // The occurrence may overlap the context itself, as in a repeating text.
        let found = (0..before.len()).rev().find(|at| self.tokens[*at..at + CONTEXT] == *context);
        found.map_or_else(Vec::new, |at| self.tokens[at + CONTEXT..].iter().take(most).copied().collect())
    }

    /// Drafts more tokens after acceptance, fewer after rejection.
    pub fn learn(&mut self, right: usize, of: usize) {
        if of > 0 {
            self.max_draft = (right + 2).min(MAX_DRAFT);
        }
    }
}

const MAX_DRAFT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_what_followed_the_same_tokens_last_time() {
        let check = |tokens: &[u32], most: usize, expect: &[u32]| {
            assert_eq!(PromptLookup::new(tokens.to_vec()).draft(most), expect, "{tokens:?}");
        };
        check(&[1, 2, 3, 4, 5, 9, 1, 2, 3], 3, &[4, 5, 9]);
        check(&[1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], 1, &[5]);
        check(&[1, 2, 3, 4, 5, 9, 1, 2, 3], 0, &[]);
        check(&[1, 2, 3, 4, 5], 4, &[]);
        check(&[7, 7, 7, 7], 4, &[7]);
        check(&[1, 2], 4, &[]);
        check(&[], 4, &[]);
    }

    #[test]
    fn a_draft_grows_with_acceptance() {
        let mut lookup = PromptLookup::new([1, 2, 3].repeat(10));
        let drafted = |lookup: &PromptLookup| lookup.draft(100).len();
        assert_eq!(drafted(&lookup), 3, "the text ends after the last occurrence");
        lookup.tokens = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 1, 2, 3].to_vec();
        let mut check = |right, of, expect| {
            lookup.learn(right, of);
            assert_eq!(drafted(&lookup), expect);
        };
        check(0, 0, 4);
        check(4, 4, 6);
        check(8, 8, 8);
        check(0, 8, 2);
    }
}
