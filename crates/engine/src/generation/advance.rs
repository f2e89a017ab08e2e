//! The results of a step as the next tokens of a reply.

use super::{Generation, Next};
use crate::catch_panic::catch_panic;
use crate::logits::Logits;
use crate::vocabulary::Vocabulary;

/// The results of one sequence of a step.
pub(crate) struct StepRows {
    /// For the newest token, and for each of the draft.
    pub logits: Vec<Logits>,
    pub draft: Vec<u32>,
    /// Maximum draft tokens of the next step.
    pub max_draft_tokens: usize,
}

/// What a step adds to a reply.
pub(crate) struct Advance {
    pub next: Vec<Next>,
    /// Tokens of the reply, those without a row of logits included.
    pub written_tokens: usize,
    /// The draft of the next step, or why the reply failed.
    pub draft: Result<Vec<u32>, String>,
}

impl Generation {
    /// Samples the next token, and one more for each accepted draft token.
    pub fn advance(&mut self, rows: StepRows, vocabulary: &Vocabulary) -> Advance {
        let (before, mut next) = (self.written_tokens(), Vec::new());
        self.prepared = None;
        let draft = catch_panic(|| self.read(rows, vocabulary, &mut next));
        Advance { next, written_tokens: self.written_tokens() - before, draft }
    }

    fn read(
        &mut self,
        StepRows { logits, draft, max_draft_tokens }: StepRows,
        vocabulary: &Vocabulary,
        taken: &mut Vec<Next>,
    ) -> Result<Vec<u32>, String> {
        for (row, logits) in logits.into_iter().enumerate() {
            let next = self.next(logits, vocabulary)?;
            let goes_on = match next {
                Next::Token(token) if draft.get(row) == Some(&token) => true,
                Next::Token(_) => {
                    self.lookup.learn(row, draft.len());
                    false
                }
                Next::Border(_) => false,
                Next::End(_) => {
                    taken.push(next);
                    return Ok(Vec::new());
                }
            };
            taken.push(next);
            if !goes_on {
                break;
            }
        }
        Ok(self.draft(max_draft_tokens))
    }
}
