//! The engine under test.

use calls::{Call, Caller, Embedder};

use crate::Result;

/// The engine that is measured.
pub trait EngineUnderTest {
    fn caller(&self) -> &dyn Caller;
    fn embedder(&self) -> &dyn Embedder;

    /// The tokens of a call's prompt.
    ///
    /// # Errors
    /// If the chat template refuses it.
    fn prompt_ids(&self, call: &Call) -> Result<Vec<u32>>;

    /// The same engine, restarted: models loaded, nothing cached.
    ///
    /// # Errors
    /// If it does not start.
    fn fresh(&self) -> Result<Box<dyn EngineUnderTest + '_>>;
}
