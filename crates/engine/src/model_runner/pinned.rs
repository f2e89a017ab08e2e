//! Pages that are computed before the first call and that prompts of all tenants may begin with.

use models::PAGE_TOKENS;
use scheduler::{SequenceId, Work};

use super::{ModelRunner, NOT_A_NUMBER};
use crate::catch_panic::catch_panic;

/// Names no sequence of a call.
const NO_CALL: SequenceId = SequenceId(u64::MAX);

impl ModelRunner {
    /// Computes whole pages of tokens, in passes of at most `step_tokens`, and pins them.
    ///
    /// # Errors
    /// If a pass fails.
    pub fn pin(&mut self, tokens: &[u32], step_tokens: usize) -> Result<(), String> {
        let pages = self.scheduler.pin(tokens);
        for (index, chunk) in tokens.chunks(step_tokens).enumerate() {
            let start = index * step_tokens;
            let pages = pages[..(start + chunk.len()).div_ceil(PAGE_TOKENS)].to_vec();
            let tokens = chunk.to_vec();
            let work = Work { sequence: NO_CALL, start, tokens, drafted: 0, pages, wants_logits: false };
            let outcomes = catch_panic(|| self.forward(&[work], Vec::new()))?;
            if outcomes.iter().any(Option::is_none) {
                return Err(NOT_A_NUMBER.into());
            }
        }
        Ok(())
    }
}
