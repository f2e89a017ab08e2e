//! Options of MemCoT.

use serde::{Deserialize, Serialize};

use crate::core::named::named;
use crate::core::options::{OptionKind, OptionSpec, Stage};

/// Where turns are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemcotStore {
    /// By words and by meaning, fused.
    Hybrid,
    /// Over a graph of entities and relations, as LightRAG does.
    Lightrag,
}

named!(MemcotStore: Hybrid = "hybrid", Lightrag = "lightrag");

/// Options of MemCoT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Turns that each search returns (the paper's K).
    pub k: usize,
    /// Turns on either side of a useful one that zoom-out reads (W: 4 on LoCoMo, 15 on LongMemEval).
    pub window: usize,
    /// Steps of search (J).
    #[serde(rename = "max_iterations")]
    pub steps: usize,
    /// Where turns are searched.
    #[serde(rename = "memcot_store")]
    pub store: MemcotStore,
}

impl Default for Options {
    fn default() -> Self {
        Options { k: 10, window: 4, steps: 8, store: MemcotStore::Hybrid }
    }
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "memcot_store",
        value_name: "STORE",
        kind: OptionKind::Name(&["hybrid", "lightrag"]),
        stage: Stage::Prepare,
        required_with: None,
        help: "Where memcot searches: hybrid (by words and by meaning) or lightrag (over a graph, which takes two calls for each turn of a conversation or 200 tokens of a text)",
    },
    OptionSpec::MAX_ITERATIONS,
    OptionSpec::K,
    OptionSpec {
        name: "window",
        value_name: "N",
        kind: OptionKind::Integer { min: 0 },
        stage: Stage::Ask,
        required_with: None,
        help: "Turns on either side of what memcot finds that it reads too (the paper: 4, or 15 for many short sessions)",
    },
];
