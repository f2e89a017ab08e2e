//! The shortest completion of constrained output.
//!
//! The distance from a parse state to the nearest valid end is computed over the compiled grammar, not searched for in
//! the text: the shortest text of each lexeme is a shortest path in its automaton ([`lexemes`]), that of each symbol a
//! fixed point over the rules ([`rules`]), and the cost of the open rules comes from an Earley chart ([`progress`]). It
//! is exact in bytes with two exceptions: `false` is preferred to `true`, and a lexeme whose automaton is too large to
//! search is ended by the first path found. A completion never has more tokens than bytes, so a distance within the
//! remaining tokens proves that the reply can be closed in time.

mod lexemes;
mod progress;
#[cfg(test)]
pub(crate) mod random_schemas;
mod rules;
mod search;
#[cfg(test)]
mod suites;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use llguidance::earley::CGrammar;

use lexemes::Lexemes;
pub(crate) use progress::ParseState;
use rules::{Cfg, ENDLESS};
pub(crate) use search::{Condition, Effort};

/// The shortest completions of one output format.
pub(crate) struct Closer {
    rules: Cfg,
    lexemes: Mutex<Lexemes>,
}

impl Closer {
    /// Computes the shortest text of every symbol of a grammar.
    ///
    /// # Errors
    /// If the format has no finite text, or its regular expressions are too complex.
    pub fn new(grammar: &CGrammar) -> Result<Closer, String> {
        let lexemes = Lexemes::new(grammar.lexer_spec())?;
        let rules = Cfg::new(grammar, |lexeme| lexemes.text(lexeme).map_or(ENDLESS, |text| text.cost))?;
        if rules.cost() == ENDLESS {
            return Err("no reply in this format can end".into());
        }
        Ok(Closer { rules, lexemes: Mutex::new(lexemes) })
    }

    /// The state before the first byte of a reply.
    pub fn begin(&self) -> ParseState {
        ParseState::new(&self.rules, &mut self.lexemes())
    }

    /// Consumes bytes of a reply; false if the grammar does not allow them.
    pub fn read(&self, progress: &mut ParseState, bytes: &[u8]) -> bool {
        self.read_allowed(progress, bytes) == bytes.len()
    }

    /// Consumes bytes of a reply up to the first that the grammar does not allow; returns how many it allows.
    fn read_allowed(&self, progress: &mut ParseState, bytes: &[u8]) -> usize {
        progress.read(bytes, &self.rules, &mut self.lexemes())
    }

    /// Number of bytes to the nearest end; none if no end has been found.
    pub fn distance(&self, progress: &mut ParseState) -> Option<usize> {
        progress.distance(&mut self.lexemes()).map(|cost| cost as usize)
    }

    /// The text to the nearest end; none if no end has been found.
    pub fn completion(&self, progress: &mut ParseState) -> Option<Vec<u8>> {
        progress.completion(&self.rules, &mut self.lexemes())
    }

    /// One byte of each class that the lexemes tell apart.
    fn bytes(&self) -> Vec<u8> {
        self.lexemes().bytes().to_vec()
    }

    fn lexemes(&self) -> MutexGuard<'_, Lexemes> {
        self.lexemes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
