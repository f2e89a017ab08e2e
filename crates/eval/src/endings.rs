//! Endings of replies: by themselves, or cut off by a limit, by the repetition guard, or by closing their format early.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use calls::Finish;
use serde::{Deserialize, Serialize};

/// Replies, and how many of them did not end by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endings {
    pub calls: usize,
    /// Free text that reached its token limit.
    #[serde(default)]
    pub length: usize,
    /// Replies that ended because their text, or a string of their format, repeated itself.
    #[serde(default)]
    pub repetition: usize,
    /// Formatted replies that were closed because their room ran out.
    #[serde(default)]
    pub closed_early: usize,
}

/// Endings by step.
pub type StepEndings = BTreeMap<String, Endings>;

impl Endings {
    /// Counts a reply.
    pub fn count(&mut self, finish: Finish) {
        self.calls += 1;
        match finish {
            Finish::Stop => {}
            Finish::Length => self.length += 1,
            Finish::Repetition | Finish::LoopClosed => self.repetition += 1,
            Finish::ClosedEarly => self.closed_early += 1,
        }
    }

    /// Replies that did not end by themselves.
    pub fn cut(&self) -> usize {
        self.length + self.repetition + self.closed_early
    }

    /// Their share, from 0 to 1.
    pub fn cut_rate(&self) -> f64 {
        self.cut() as f64 / self.calls.max(1) as f64
    }
}

impl AddAssign for Endings {
    fn add_assign(&mut self, other: Endings) {
        self.calls += other.calls;
        self.length += other.length;
        self.repetition += other.repetition;
        self.closed_early += other.closed_early;
    }
}

/// Adds the endings of other calls, step by step.
pub(crate) fn add(sum: &mut StepEndings, other: &StepEndings) {
    other.iter().for_each(|(step, endings)| *sum.entry(step.clone()).or_default() += *endings);
}
