//! The shortest end of an answer that has a form.
//!
//! The distance from a state of the answer to its nearest valid end is computed over the compiled grammar, not searched
//! for in the text: the shortest text of each lexeme is a shortest path in its automaton ([`lexemes`]), that of each symbol
//! a fixed point over the rules ([`rules`]), and what the open rules still need is read off an Earley chart ([`progress`]).
//! It is exact in bytes, up to two exceptions: `false` is preferred to `true`, and a lexeme whose automaton is too large to
//! search is ended by the first way that is found. No end has more tokens than bytes, so a distance within the tokens that
//! are left is a proof that the answer can be closed in time.

mod lexemes;
mod progress;
mod rules;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use llguidance::earley::CGrammar;

use lexemes::Lexemes;
pub(crate) use progress::Progress;
use rules::{Cfg, ENDLESS};

/// What is known of the ends of one form.
pub(crate) struct Closer {
    rules: Cfg,
    lexemes: Mutex<Lexemes>,
}

impl Closer {
    /// Finds the shortest text of everything in a grammar.
    ///
    /// # Errors
    /// If no answer in this form ends, or its regular expressions are too complex.
    pub fn new(grammar: &CGrammar) -> Result<Closer, String> {
        let lexemes = Lexemes::new(grammar.lexer_spec())?;
        let rules = Cfg::new(grammar, |lexeme| lexemes.text(lexeme).map_or(ENDLESS, |text| text.cost))?;
        if rules.cost() == ENDLESS {
            return Err("no answer in it has an end".into());
        }
        Ok(Closer { rules, lexemes: Mutex::new(lexemes) })
    }

    /// Before the first byte of an answer.
    pub fn begin(&self) -> Progress {
        Progress::new(&self.rules, &mut self.lexemes())
    }

    /// Reads bytes of an answer; false if they do not belong there.
    pub fn read(&self, progress: &mut Progress, bytes: &[u8]) -> bool {
        progress.read(bytes, &self.rules, &mut self.lexemes())
    }

    /// Bytes to the nearest end; none if no end has been found.
    pub fn distance(&self, progress: &mut Progress) -> Option<usize> {
        progress.distance(&mut self.lexemes()).map(|cost| cost as usize)
    }

    /// The bytes to the nearest end; none if no end has been found.
    pub fn completion(&self, progress: &mut Progress) -> Option<Vec<u8>> {
        progress.completion(&self.rules, &mut self.lexemes())
    }

    fn lexemes(&self) -> MutexGuard<'_, Lexemes> {
        self.lexemes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
