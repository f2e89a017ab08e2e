//! What a workload costs, and the units in which it is reported.

use std::fmt;

use serde::Serialize;

/// The cost of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    /// From the first call to the end of the last answer.
    pub seconds: f64,
    pub prompt_tokens: usize,
    pub cached_tokens: usize,
    pub output_tokens: usize,
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "prompt tokens/s")]
    PromptTokensPerSecond,
    #[serde(rename = "output tokens/s")]
    OutputTokensPerSecond,
}

impl Unit {
    /// The number of this unit for an outcome.
    pub(super) fn of(self, outcome: &Outcome) -> f64 {
        match self {
            Unit::Seconds => outcome.seconds,
            Unit::Milliseconds => outcome.seconds * 1e3,
            Unit::PromptTokensPerSecond => outcome.prompt_tokens as f64 / outcome.seconds,
            Unit::OutputTokensPerSecond => outcome.output_tokens as f64 / outcome.seconds,
        }
    }

    pub(super) fn more_is_better(self) -> bool {
        matches!(self, Unit::PromptTokensPerSecond | Unit::OutputTokensPerSecond)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::PromptTokensPerSecond => "prompt tokens/s",
            Unit::OutputTokensPerSecond => "output tokens/s",
        })
    }
}
