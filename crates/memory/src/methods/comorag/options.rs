//! Options of ComoRAG (section 4.3, appendix B.4).

use serde::{Deserialize, Serialize};

use super::knowledge::Knowledge;
use crate::core::options::{OptionKind, OptionSpec, Stage};

/// Options of ComoRAG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The layers that are built and searched; the loop runs over any of them (section 4.3). Empty means all.
    pub layers: Vec<Knowledge>,
    /// Cycles after the first attempt.
    #[serde(rename = "max_iterations")]
    pub max_cycles: usize,
    /// Tokens of the context of try-answer, fewer where its model's context is smaller.
    pub context_tokens: usize,
    /// Tokens of a chunk, by the embedder, at most an eighth of the memorizer's context. Existing chunks are kept.
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

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "layers",
        value_name: "LAYER,...",
        kind: OptionKind::Names(&["veridical", "semantic", "episodic"]),
        stage: Stage::Prepare,
        required_with: None,
        help: "Layers of comorag: veridical, semantic, episodic",
    },
    OptionSpec::MAX_ITERATIONS,
];
