//! The next rows of a reply: draft tokens, and which logits each row needs.

use std::sync::Arc;

use super::Generation;
use crate::catch_panic::catch_panic;
use crate::grammar::Grammar;
use crate::logits::{Purpose, RowDraw, Wanted};
use crate::step_limits::DraftLimits;
use crate::vocabulary::Vocabulary;

/// The requests for the rows of the next step.
pub(crate) struct Prepared {
    draft: Vec<u32>,
    /// For the newest token, and for each of the draft.
    wanted: Vec<Wanted>,
}

impl Generation {
    /// The logits needed for the next row, and for one more row after each of these draft tokens. If the grammar allows
    /// at most `most` tokens, only their logits are computed. A grammar's failure is reported when the reply is continued.
    pub fn wanted(&mut self, draft: &[u32], most: usize, vocabulary: &Vocabulary) -> Vec<Wanted> {
        if let Some(known) = self.prepared.as_ref().filter(|known| known.draft.starts_with(draft)) {
            return known.wanted[..=draft.len()].to_vec();
        }
        let all = |_| vec![Wanted::default(); draft.len() + 1];
        catch_panic(|| self.find_wanted(draft, most, vocabulary)).unwrap_or_else(all)
    }

    /// Computes ahead of the next step what [`Generation::wanted`] returns for this draft.
    pub fn prepare(&mut self, draft: &[u32], most: usize, vocabulary: &Vocabulary) {
        let wanted = self.wanted(draft, most, vocabulary);
        self.prepared = Some(Prepared { draft: draft.to_vec(), wanted });
    }

    fn find_wanted(&mut self, draft: &[u32], most: usize, vocabulary: &Vocabulary) -> Result<Vec<Wanted>, String> {
        let (rows, thinks) = (draft.len() + 1, self.thinking().is_some());
        // Log-probabilities need the whole row, and so does a token that may have to be drawn again.
        if self.top_logprobs.is_some() || self.grammar.as_ref().is_some_and(Grammar::is_validated) {
            // The mask is kept until the token is drawn. Those of later rows are computed when these are reached.
            if let Some(grammar) = self.grammar.as_mut().filter(|_| !thinks) {
                grammar.mask()?;
            }
            return Ok(vec![Wanted::default(); rows]);
        }
        let (sampler, written) = (self.sampler, self.written_tokens());
        let adjustments: Vec<_> = (0..rows).map(|row| self.adjustments.after(&draft[..row])).collect();
        // A token drawn under a mask, or one that is not reached if there is no mask.
        let of = |row: usize, outputs, mask: Option<Arc<[u32]>>| {
            let purpose = match mask {
                Some(mask) => {
                    let (adjustments, position) = (Arc::clone(&adjustments[row]), written + row);
                    Purpose::Draw(RowDraw { sampler, mask, adjustments, position })
                }
                None => Purpose::Nothing,
            };
            Wanted { outputs, purpose }
        };
        if thinks {
            return Ok((0..rows).map(|row| of(row, None, Some(Arc::clone(&vocabulary.thought)))).collect());
        }
        let Some(grammar) = &mut self.grammar else {
            let mask = |row| self.text_mask(row, vocabulary);
            return Ok((0..rows).map(|row| of(row, None, Some(mask(row)))).collect());
        };
        // The mask is kept until the token is drawn, and the copy below has it too.
        grammar.mask()?;
        // Only draft tokens advance beyond the current state.
        let mut copy = (!draft.is_empty()).then(|| grammar.clone());
        let ahead = copy.as_mut().unwrap_or(grammar);
        let mut wanted = Vec::new();
        for row in 0..rows {
            let mask = ahead.mask()?;
            let outputs = (mask.num_set() <= most).then(|| mask.iter().collect());
            wanted.push(of(row, outputs, Some(mask.as_slice().into())));
            match draft.get(row) {
                Some(token) if mask.is_allowed(*token) && !ahead.is_end(*token) => ahead.accept(*token)?,
                _ => break,
            }
        }
        // Rows after a draft that the grammar rejects are not read.
        let reached = wanted.len();
        wanted.extend((reached..rows).map(|row| of(row, Some(Vec::new()), None)));
        Ok(wanted)
    }

    /// The draft tokens of the next step: known ones, whose rows only log-probabilities need, otherwise those found by
    /// prompt lookup in prompt and reply.
    pub(super) fn draft(&mut self, DraftLimits { found, known }: DraftLimits) -> Vec<u32> {
        // Without log-probabilities a known token is drafted only if its acceptance depends on its row.
        let most = if self.top_logprobs.is_some() { known.max(found) } else { found };
        if most == 0 {
            return Vec::new();
        }
        if let Some(closing) = &self.closing {
            return closing.iter().rev().take(most).copied().collect();
        }
        let thinks = self.thinking().is_some();
        let Some(grammar) = self.grammar.as_mut().filter(|_| !thinks) else { return self.lookup.draft(found) };
        let mut draft = grammar.forced();
        if draft.is_empty() {
            draft = self.lookup.draft(found);
            draft.truncate(grammar.allowed_of(&draft));
        }
        draft.truncate(most);
        draft
    }
}
