//! The results of a step as the next tokens of a reply.

use super::{Generation, Next};
use crate::catch_panic::catch_panic;
use crate::logits::Logits;
use crate::step_limits::DraftLimits;
use crate::vocabulary::Vocabulary;

/// The results of one sequence of a step.
pub(crate) struct StepRows {
    /// For the newest token, and for each of the draft.
    pub logits: Vec<Logits>,
    pub draft: Vec<u32>,
    /// Limits of the next step's draft.
    pub drafts: DraftLimits,
}

/// What a step adds to a reply.
pub(crate) struct Advance {
    pub next: Vec<Next>,
    /// Tokens of the reply, its last one included.
    pub written_tokens: usize,
    /// The draft of the next step, or why the reply failed.
    pub draft: Result<Vec<u32>, String>,
}

impl Generation {
    /// Samples the next token, and one more for each accepted draft token. Tokens that are known without logits are
    /// appended between them; the next step computes those that were not drafted, without rows of logits.
    pub fn advance(&mut self, rows: StepRows, vocabulary: &Vocabulary) -> Advance {
        let (before, mut next) = (self.written_tokens(), Vec::new());
        self.prepared = None;
        let draft = catch_panic(|| self.read(rows, vocabulary, &mut next));
        Advance { next, written_tokens: self.written_tokens() - before, draft }
    }

    fn read(
        &mut self,
        StepRows { logits, draft, drafts }: StepRows,
        vocabulary: &Vocabulary,
        taken: &mut Vec<Next>,
    ) -> Result<Vec<u32>, String> {
        let mut rows = logits.into_iter();
        // The number of tokens while they are those of the draft, and the next row is therefore that of the next token.
        let mut drafted = Some(0);
        loop {
            let row = rows.next().filter(|_| drafted.is_some());
            let next = match (self.next_known(vocabulary)?, row) {
                (Some(known), _) => known,
                (None, Some(logits)) => self.next(logits, vocabulary)?,
                (None, None) => return Ok(self.draft(drafts)),
            };
            drafted = match (&next, drafted) {
                (Next::Token(token), Some(right)) if draft.get(right) == Some(token) => Some(right + 1),
                (Next::Token(_), Some(right)) => {
                    self.lookup.learn(right, draft.len());
                    None
                }
                _ => None,
            };
            let is_end = matches!(next, Next::End(_));
            taken.push(next);
            if is_end {
                return Ok(Vec::new());
            }
        }
    }
}
