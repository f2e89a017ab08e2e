//! Constrained decoding: replies that always have the requested output format.
//!
//! A [`Grammar`] gives a logits mask before each token, and the shortest completion of the reply so far. Where the format
//! has keywords that no grammar enforces, a token is accepted only if a completion is known that makes the reply valid.
//! If llguidance's automata exceed their limits in the midst of a reply, perhaps because of other replies that share
//! them, it gets new ones; if these do too, it is completed by the shortest way.

mod forced;
mod unused;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use llguidance::Matcher;
use toktrie::{SimpleVob, TokenizerEnv};

use forced::Forced;
pub use unused::Unused;

use crate::completion::{Closer, Condition, Effort, ParseState};
use crate::schema::Check;
use crate::token_env::TokenEnv;
use crate::whitespace::Whitespace;

/// The parse state of one reply.
#[derive(Clone)]
pub struct Grammar {
    matcher: Matcher,
    /// True once the automata of the matcher have exceeded their limits, or a panic has left them locked. Clones share both.
    is_exhausted: Arc<AtomicBool>,
    /// New automata for those that have exceeded their limits; none in a grammar of one reply only.
    unused: Option<Arc<Unused>>,
    /// The tokens that the matcher has consumed.
    consumed: Vec<u32>,
    /// The matcher's state in our chart, for the distance to the end.
    state: ParseState,
    closer: Arc<Closer>,
    env: Arc<TokenEnv>,
    whitespace: Arc<Whitespace>,
    /// Length of the white-space run at the end of the accepted text, and its maximum; 0 for no limit.
    run: usize,
    max_whitespace: usize,
    /// Tokens of the shortest reply.
    shortest: usize,
    /// Judges what the grammar does not enforce.
    check: Option<Arc<Check>>,
    /// With a check: the accepted text, and a completion that makes it valid.
    text: Vec<u8>,
    ending: Option<Vec<u8>>,
    /// Once the matcher has failed: the tokens that must follow, the next one last.
    rest: Option<Vec<u32>>,
    /// The tokens that may come next, once they are known.
    mask: Option<SimpleVob>,
    /// What the grammar forces next, once it is known.
    forced: Option<Forced>,
}

/// Whether a token was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    Accepted,
    /// The reply could not be closed within its limit after it.
    NoRoom,
    /// No valid reply is known that begins with it.
    Invalid,
}

/// Effort of the search for a first valid reply.
const COMPILE_EFFORT: Effort = Effort { tries: 10_000 };
/// The same after a token.
const TOKEN_EFFORT: Effort = Effort { tries: 1_000 };

impl Grammar {
    /// The state before the first token.
    ///
    /// # Errors
    /// If no completion has been found.
    pub fn new(
        matcher: Matcher,
        closer: Arc<Closer>,
        env: Arc<TokenEnv>,
        whitespace: Arc<Whitespace>,
    ) -> Result<Grammar, String> {
        let mut grammar = Grammar {
            matcher,
            is_exhausted: Arc::default(),
            unused: None,
            consumed: Vec::new(),
            state: closer.begin(),
            closer,
            env,
            whitespace,
            run: 0,
            max_whitespace: 0,
            shortest: 0,
            check: None,
            text: Vec::new(),
            ending: None,
            rest: None,
            mask: None,
            forced: None,
        };
        grammar.shortest = grammar.closing()?.len();
        Ok(grammar)
    }

    /// The same grammar with a check of what it does not enforce.
    ///
    /// # Errors
    /// If no reply has been found that is valid.
    pub fn checked_by(mut self, check: Check) -> Result<Grammar, String> {
        let check = Arc::new(check);
        self.check = Some(Arc::clone(&check));
        self.ending = self.find_ending(&[], COMPILE_EFFORT);
        if self.ending.is_none() {
            let shortest = self.closer.completion(&mut self.state.clone()).unwrap_or_default();
            return Err(if check.is_too_much_work(&shortest) {
                "its references multiply, so that even its shortest reply cannot be validated".to_owned()
            } else {
                format!("no valid reply was found (searched because no grammar enforces {})", check.keywords())
            });
        }
        self.shortest = self.closing()?.len();
        Ok(self)
    }

    /// The same grammar with a maximum length of white-space runs; 0 for no limit.
    #[must_use]
    pub fn with_max_whitespace(self, max_whitespace: usize) -> Grammar {
        Grammar { max_whitespace, mask: None, ..self }
    }

    /// Tokens of the shortest reply.
    pub fn shortest(&self) -> usize {
        self.shortest
    }

    /// The same grammar, from which those of several replies are copied; `unused` compiles the matcher that it has now.
    #[must_use]
    pub fn shared(self, unused: Unused) -> Grammar {
        Grammar { unused: Some(Arc::new(unused)), ..self }
    }

    /// The same grammar before the first token with automata that no reply has used.
    ///
    /// # Errors
    /// If it is the grammar of one reply only, or cannot be compiled again.
    pub fn renewed(&self) -> Result<Grammar, String> {
        let unused = self.unused.as_ref().ok_or("the grammar of one reply cannot be renewed")?;
        Ok(Grammar { matcher: unused.matcher()?, is_exhausted: Arc::default(), ..self.clone() })
    }

    /// The same grammar with automata of its own: clones that share them compute their masks one at a time.
    #[must_use]
    pub fn separate(self) -> Grammar {
        Grammar { matcher: self.matcher.deep_clone(), is_exhausted: Arc::default(), ..self }
    }

    /// Clones that share its automata.
    pub fn clones(&self) -> usize {
        Arc::strong_count(&self.is_exhausted) - 1
    }

    /// True if automata that no reply has used are kept beside its own.
    #[cfg(test)]
    pub fn has_unused(&self) -> bool {
        self.unused.as_ref().is_some_and(|unused| unused.is_compiled())
    }

    /// True if no clone can be used for another reply.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::Relaxed)
    }

    /// True if the reply is being completed by the shortest way, because its automata have exceeded their limits.
    pub fn is_closing(&self) -> bool {
        self.rest.is_some()
    }

    /// True for a token that ends a reply which could continue.
    pub fn is_end(&self, token: u32) -> bool {
        self.env.tok_trie().eos_tokens().contains(&token)
    }

    /// True if tokens that the mask allows may prove [`Acceptance::Invalid`]: another must then be drawn.
    pub fn is_validated(&self) -> bool {
        self.check.as_ref().is_some_and(|check| check.validates())
    }

    /// The tokens that may come next.
    ///
    /// # Errors
    /// If the grammar has failed and no completion has been found; the reply must then be aborted.
    pub fn mask(&mut self) -> Result<SimpleVob, String> {
        if let Some(mask) = &self.mask {
            return Ok(mask.clone());
        }
        let mask = self.find_mask()?;
        Ok(self.mask.insert(mask).clone())
    }

    fn find_mask(&mut self) -> Result<SimpleVob, String> {
        if let Some(rest) = &self.rest {
            let trie = self.env.tok_trie();
            return Ok(rest.last().map_or_else(|| trie.eos_token_set(), |token| trie.singleton_token_set(*token)));
        }
        let found = match self.next_forced() {
            Some(token) => Ok(self.env.tok_trie().singleton_token_set(token)),
            None => self.with_matcher(Matcher::compute_mask_or_eos),
        };
        let mut mask = match found {
            Ok(mask) => mask,
            Err(error) => {
                self.complete_without_matcher(&error)?;
                return self.find_mask();
            }
        };
        if self.max_whitespace > 0 {
            self.whitespace.forbid(&mut mask, self.run, self.max_whitespace);
        }
        let Some(check) = &self.check else { return Ok(mask) };
        let ends = self.env.tok_trie().eos_tokens();
        if ends.iter().any(|end| mask.is_allowed(*end)) && check.violations(&self.text).count != 0 {
            ends.iter().for_each(|end| mask.disallow_token(*end));
        }
        if let Some(key) = check.open_key(&self.text) {
            // Only a token with a quotation mark ends the key.
            let repeats = |token: &&u32| key.would_repeat(self.env.tokenizer.bytes(**token));
            self.env.quoting.iter().filter(repeats).for_each(|token| mask.disallow_token(*token));
        }
        Ok(mask)
    }

    /// Accepts a token that the mask allows.
    ///
    /// # Errors
    /// If it was not allowed.
    pub fn accept(&mut self, token: u32) -> Result<(), String> {
        if self.rest.is_some() {
            return self.accept_rest(token);
        }
        let bytes = self.env.tokenizer.bytes(token);
        self.closer.read(&mut self.state, bytes);
        if self.check.is_some() {
            self.text.extend_from_slice(bytes);
            self.ending = self.ending.take().and_then(|ending| ending.strip_prefix(bytes).map(<[u8]>::to_vec));
        }
        self.consume(token)
    }

    /// Accepts a token that the mask allows if the reply can be closed validly within `left` tokens after it; otherwise
    /// changes nothing.
    ///
    /// # Errors
    /// If the token was not allowed.
    pub fn accept_within(&mut self, token: u32, left: usize) -> Result<Acceptance, String> {
        if self.rest.is_some() {
            return self.accept_rest(token).map(|()| Acceptance::Accepted);
        }
        let (before, length) = (self.state.mark(), self.text.len());
        let bytes = self.env.tokenizer.bytes(token);
        let distance =
            if self.closer.read(&mut self.state, bytes) { self.closer.distance(&mut self.state) } else { None };
        let (mut acceptance, mut ending) = (Acceptance::NoRoom, None);
        if let Some(mut distance) = distance {
            acceptance = Acceptance::Accepted;
            if self.check.is_some() {
                self.text.extend_from_slice(bytes);
                let rest = self.ending.as_deref().and_then(|ending| ending.strip_prefix(bytes));
                ending = match rest {
                    Some(rest) if rest.len() <= distance => Some(rest.to_vec()),
                    _ => self.find_ending(self.ending.as_deref().unwrap_or_default(), TOKEN_EFFORT),
                };
                match &ending {
                    Some(ending) => distance = ending.len(),
                    None => acceptance = Acceptance::Invalid,
                }
            }
            // A completion never has more tokens than bytes.
            if acceptance == Acceptance::Accepted && distance > left {
                let mut after = self.clone();
                after.ending.clone_from(&ending);
                after.consume(token)?;
                if !after.closing().is_ok_and(|end| end.len() <= left) {
                    acceptance = Acceptance::NoRoom;
                }
            }
        }
        if acceptance == Acceptance::Accepted {
            self.ending = ending;
            self.consume(token)?;
        } else {
            self.text.truncate(length);
            self.state.restore(before);
        }
        Ok(acceptance)
    }

    /// A completion that makes the text valid; `earlier` did so before the last token.
    fn find_ending(&self, earlier: &[u8], effort: Effort) -> Option<Vec<u8>> {
        let check = self.check.as_ref()?;
        let violations = |rest: &[u8]| check.violations(&[&self.text, rest].concat());
        let condition = Condition { violations: &violations, literals: &check.literals };
        self.closer.valid_completion(&mut self.state.clone(), &condition, earlier, effort)
    }

    fn consume(&mut self, token: u32) -> Result<(), String> {
        self.mask = None;
        self.forced = self.forced.take().and_then(|forced| forced.after(token));
        self.run = self.whitespace.run_after(self.run, token);
        if let Err(error) = self.with_matcher(|matcher| matcher.consume_token(token)) {
            return self.complete_without_matcher(&error);
        }
        self.consumed.push(token);
        Ok(())
    }

    /// The result of an operation of the matcher. One that fails is repeated with new automata: other replies that
    /// share these may have taken them to their limits.
    fn with_matcher<T, E: Display>(&mut self, operate: impl Fn(&mut Matcher) -> Result<T, E>) -> Result<T, String> {
        let error = match operate(&mut self.matcher) {
            Ok(done) => return Ok(done),
            Err(error) => error.to_string(),
        };
        let (done, matcher) = self.repeated(&operate).ok_or(error)?;
        (self.matcher, self.is_exhausted) = (matcher, Arc::default());
        Ok(done)
    }

    /// The result of an operation of a matcher after the same tokens with automata that no other reply uses, and that
    /// matcher; none if it fails too.
    fn repeated<T, E>(&self, operate: &impl Fn(&mut Matcher) -> Result<T, E>) -> Option<(T, Matcher)> {
        let mut matcher = self.unused.as_ref()?.matcher().ok()?;
        matcher.consume_tokens(&self.consumed).ok()?;
        let done = operate(&mut matcher).ok()?;
        self.is_exhausted.store(true, Ordering::Relaxed);
        Some((done, matcher))
    }

    /// Has the reply completed by the shortest way, because the matcher failed with this error.
    ///
    /// # Errors
    /// The error itself unless its cause is that the matcher exceeded its limits, or if no completion has been found.
    pub(crate) fn complete_without_matcher(&mut self, error: &str) -> Result<(), String> {
        if !is_beyond_limits(error) {
            // So llguidance reports a panic that it has caught.
            if error.contains("panic: ") {
                self.is_exhausted.store(true, Ordering::Relaxed);
            }
            return Err(error.to_owned());
        }
        self.is_exhausted.store(true, Ordering::Relaxed);
        let mut rest = self.env.tokens(&self.completion()?)?;
        rest.reverse();
        self.rest = Some(rest);
        Ok(())
    }

    /// Accepts the next token of the completion without the matcher, or its end.
    fn accept_rest(&mut self, token: u32) -> Result<(), String> {
        self.mask = None;
        let rest = self.rest.get_or_insert_default();
        match rest.pop() {
            Some(next) if next != token => Err(format!("token {token} is not {next}, which must follow")),
            None if !self.is_end(token) => Err(format!("token {token} does not end the reply, which is complete")),
            _ => Ok(()),
        }
    }

    /// True if the reply is complete and nothing may follow.
    pub fn is_complete(&self) -> bool {
        self.rest.as_ref().map_or_else(|| self.matcher.is_stopped(), Vec::is_empty)
    }

    /// How many of these tokens may follow one another.
    pub fn allowed_of(&mut self, tokens: &[u32]) -> usize {
        if self.rest.is_some() {
            return tokens.iter().zip(self.forced()).take_while(|(token, forced)| *token == forced).count();
        }
        if tokens.is_empty() { 0 } else { self.matcher.validate_tokens(tokens).unwrap_or(0) }
    }

    /// The tokens of the shortest completion, or of a short valid one; none if the reply is complete.
    ///
    /// # Errors
    /// If no completion has been found.
    pub fn closing(&self) -> Result<Vec<u32>, String> {
        if let Some(rest) = &self.rest {
            return Ok(rest.iter().rev().copied().collect());
        }
        let bytes = self.completion()?;
        let tokens = self.env.tokens(&bytes)?;
        let is_end = |matcher: &mut Matcher| {
            matcher.consume_tokens(&tokens).map(|()| matcher.is_stopped() || matcher.is_accepting().unwrap_or(false))
        };
        let is_taken = is_end(&mut self.matcher.clone()).or_else(|error| {
            let repeated = self.repeated(&is_end).map(|(is_taken, _)| is_taken);
            repeated.ok_or_else(|| error.to_string())
        });
        if is_taken.unwrap_or_else(|error| is_beyond_limits(&error)) {
            return Ok(tokens);
        }
        Err(format!("its shortest completion {:?} is not accepted", String::from_utf8_lossy(&bytes)))
    }

    /// The bytes of the shortest completion, or of a short valid one.
    fn completion(&self) -> Result<Vec<u8>, String> {
        let bytes = match (&self.ending, &self.check) {
            (Some(ending), _) => Some(ending.clone()),
            (None, Some(_)) => self.find_ending(&[], COMPILE_EFFORT),
            (None, None) => self.closer.completion(&mut self.state.clone()),
        };
        bytes.ok_or_else(|| "no completion was found".to_owned())
    }
}

/// Whether an error of llguidance says that an automaton or a chart grew beyond its limits: the stop reason of charts is also given
/// for a token that is not allowed.
fn is_beyond_limits(error: &str) -> bool {
    error.contains("LexerTooComplex") || error.contains("Too many items")
}
