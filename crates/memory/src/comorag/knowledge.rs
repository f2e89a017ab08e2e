//! The three layers of knowledge, and what a user may choose about them (section 2.2, appendix B.4).

use crate::settings::names;

/// A layer of knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Knowledge {
    /// The text itself, in chunks, found through entities and facts.
    Veridical,
    /// Summaries by theme.
    Semantic,
    /// Summaries in the order of the text.
    Episodic,
}

// In the order in which prompts show them.
names!(Knowledge: Veridical = "veridical", Semantic = "semantic", Episodic = "episodic");

/// How ComoRAG works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The layers that are built and searched; the loop runs over any of them (section 4.3). None stands for all.
    pub layers: Vec<Knowledge>,
    /// Cycles after the first attempt.
    pub max_cycles: usize,
    /// Tokens of all that try-answer is shown, less where its model's context is smaller.
    pub context_tokens: usize,
    /// Tokens of a chunk, by the embedder, at most an eighth of the memorizer's context. Documents that are cut stay so.
    pub chunk_tokens: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { layers: Knowledge::ALL.to_vec(), max_cycles: 5, context_tokens: 6000, chunk_tokens: 512 }
    }
}

impl Options {
    /// Whether a layer is in use.
    pub(super) fn uses(&self, layer: Knowledge) -> bool {
        self.layers.is_empty() || self.layers.contains(&layer)
    }

    /// The layers in use, in the order in which prompts show them.
    pub(super) fn used(&self) -> impl Iterator<Item = Knowledge> {
        Knowledge::ALL.into_iter().filter(|layer| self.uses(*layer))
    }
}
