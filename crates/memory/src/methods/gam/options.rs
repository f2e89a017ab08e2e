//! Options of GAM.

use serde::{Deserialize, Serialize};

use crate::core::named::named;
use crate::core::options::{OptionKind, OptionSpec, Stage};

/// What the researcher hands to the responder (table 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputForm {
    /// The integrated notes.
    Integration,
    /// The notes and the pages that they come from.
    Pages,
    /// The notes and the sentences of those pages that are relevant to the question.
    Extraction,
}

named!(OutputForm: Integration = "integration", Pages = "pages", Extraction = "extraction");

/// Options of GAM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Rounds of plan, search, integrate and reflect (the paper's maximum reflection depth).
    pub max_iterations: usize,
    /// Pages that each tool returns.
    pub k: usize,
    pub output: OutputForm,
}

impl Default for Options {
    fn default() -> Self {
        Options { max_iterations: 3, k: 5, output: OutputForm::Integration }
    }
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::MAX_ITERATIONS,
    OptionSpec::K,
    OptionSpec {
        name: "output",
        value_name: "FORM",
        kind: OptionKind::Name(&["integration", "pages", "extraction"]),
        stage: Stage::Ask,
        required_with: None,
        help: "What research hands to the answer: integration, pages or extraction",
    },
];
