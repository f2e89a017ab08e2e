//! The three layers of knowledge (section 2.2).

use crate::core::named::named;

/// A layer of knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knowledge {
    /// The text itself, in chunks, found through entities and facts.
    Veridical,
    /// Summaries by theme.
    Semantic,
    /// Summaries in the order of the text.
    Episodic,
}

// In the order in which prompts show them.
named!(Knowledge: Veridical = "veridical", Semantic = "semantic", Episodic = "episodic");
