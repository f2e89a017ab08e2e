//! Automata that no reply has used, for replies whose automata have exceeded their limits.

use std::sync::{Mutex, OnceLock, PoisonError};

use llguidance::Matcher;

type Compile = dyn Fn() -> Result<Matcher, String> + Send + Sync;

/// The matcher of a format before the first token. It is compiled when it is first needed, since few formats need it, and
/// its automata take as much memory as those that the first reply begins with.
pub struct Unused {
    compile: Box<Compile>,
    /// Its automata are copied, and used by no reply.
    compiled: OnceLock<Result<Mutex<Matcher>, String>>,
}

impl Unused {
    pub fn new(compile: impl Fn() -> Result<Matcher, String> + Send + Sync + 'static) -> Unused {
        Unused { compile: Box::new(compile), compiled: OnceLock::new() }
    }

    /// The matcher with automata of its own.
    ///
    /// # Errors
    /// If it cannot be compiled.
    pub fn matcher(&self) -> Result<Matcher, String> {
        let compiled = self.compiled.get_or_init(|| (self.compile)().map(Mutex::new));
        let matcher = compiled.as_ref().map_err(String::clone)?;
        Ok(matcher.lock().unwrap_or_else(PoisonError::into_inner).deep_clone())
    }

    /// True once it was needed.
    #[cfg(test)]
    pub fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }
}
