//! The tokens that a grammar forces.

use super::{Acceptance, Grammar};

/// Tokens that must come next, which are tokenised once for the whole of the forced text.
#[derive(Clone)]
pub(super) struct Forced {
    /// The next one is last.
    tokens: Vec<u32>,
    /// With how many tokens the reply can be closed along these, once it is known.
    needed: Option<usize>,
}

impl Forced {
    /// What is forced after a token, if that is known.
    pub fn after(mut self, token: u32) -> Option<Forced> {
        let is_next = self.tokens.pop() == Some(token);
        self.needed = self.needed.map(|needed| needed.saturating_sub(1));
        (is_next && !self.tokens.is_empty()).then_some(self)
    }
}

impl Grammar {
    /// Tokens that must come next, if the grammar forces the text.
    pub fn forced(&mut self) -> Vec<u32> {
        if let Some(rest) = &self.rest {
            return rest.iter().rev().copied().collect();
        }
        self.find_forced().tokens.iter().rev().copied().collect()
    }

    /// The first of the forced tokens.
    pub(super) fn next_forced(&mut self) -> Option<u32> {
        if let Some(rest) = &self.rest {
            return rest.last().copied();
        }
        self.find_forced().tokens.last().copied()
    }

    fn find_forced(&mut self) -> &mut Forced {
        self.forced.get_or_insert_with(|| {
            let mut tokens = self.matcher.compute_ff_tokens();
            tokens.reverse();
            Forced { tokens, needed: None }
        })
    }

    /// The next token, if the grammar forces it.
    ///
    /// # Errors
    /// Those of [`Grammar::mask`].
    pub fn forced_token(&mut self) -> Result<Option<u32>, String> {
        let Some(token) = self.next_forced() else { return Ok(None) };
        // Only a check forbids what the grammar forces.
        let is_allowed = self.rest.is_some() || self.check.is_none() || self.mask()?.is_allowed(token);
        Ok(is_allowed.then_some(token))
    }

    /// Accepts the next token, and returns it, if the grammar forces it and the reply can be closed validly within `left`
    /// tokens from here; otherwise changes nothing.
    ///
    /// # Errors
    /// Those of [`Grammar::mask`], or if the token was not allowed.
    pub fn accept_forced(&mut self, left: usize) -> Result<Option<u32>, String> {
        let (Some(token), Some(after)) = (self.forced_token()?, left.checked_sub(1)) else { return Ok(None) };
        // The room for all forced tokens is found at once, since no reply is closed between them.
        if self.rest.is_none() && self.needed(left) <= left {
            self.accept(token)?;
            return Ok(Some(token));
        }
        Ok((self.accept_within(token, after)? == Acceptance::Accepted).then_some(token))
    }

    /// With how many tokens the reply can be closed along the forced ones: any number that is proven, if it is within
    /// `left`, otherwise the least.
    fn needed(&mut self, left: usize) -> usize {
        let Forced { tokens, needed } = self.find_forced();
        if let Some(needed) = *needed {
            return needed;
        }
        let tokens: Vec<u32> = tokens.iter().rev().copied().collect();
        let needed = self.find_needed(&tokens, left).unwrap_or(usize::MAX);
        self.find_forced().needed = Some(needed);
        needed
    }

    /// The same for these forced tokens; none if no end is found, or with a check another one is to be searched for.
    fn find_needed(&mut self, forced: &[u32], left: usize) -> Option<usize> {
        let before = self.state.mark();
        let bytes = forced.iter().map(|token| self.env.tokenizer.bytes(*token)).collect::<Vec<_>>().concat();
        let is_read = self.closer.read(&mut self.state, &bytes);
        let distance = if is_read { self.closer.distance(&mut self.state) } else { None };
        self.state.restore(before);
        let mut distance = distance?;
        if self.check.is_some() {
            let rest = self.ending.as_deref()?.strip_prefix(&bytes[..])?;
            if rest.len() > distance {
                return None;
            }
            distance = rest.len();
        }
        // A completion never has more tokens than bytes.
        let most = forced.len() + distance;
        if most <= left {
            return Some(most);
        }
        let mut after = self.clone();
        forced.iter().try_for_each(|token| after.accept(*token)).ok()?;
        Some(forced.len() + after.closing().ok()?.len())
    }
}
