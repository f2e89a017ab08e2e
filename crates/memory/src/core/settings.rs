//! What some settings select from: the layout of prompts and the form of answers; and their limits.

use crate::core::named::named;

/// The least [`crate::Settings::evidence_tokens`]: fewer hold no passage, and the answer would be made from nothing.
pub const MIN_EVIDENCE_TOKENS: usize = 64;

/// The order of the parts of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As the papers print it: one user turn, the question early.
    Paper,
    /// The shared prefix first: instructions in the system turn, then the text that grows, the question last.
    SharedFirst,
}

named!(Layout: Paper = "paper", SharedFirst = "shared-first");

/// What an answer consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// A sentence that states the short answer; what [`crate::Settings::answer_rules`] ask for, if there are any.
    Sentence,
    /// The short answer alone.
    Short,
    /// What [`crate::Settings::answer_rules`] ask for; it is always written by the model and never chosen from the evidence.
    Free,
}
