//! Limits the rows of a step while replies are streamed, which bounds inter-token latency.

use std::time::Duration;

use scheduler::PROMPT_ROWS;

/// Target duration of a step while replies are streamed.
const STREAMING_STEP: Duration = Duration::from_millis(60);
/// Minimum rows: fewer make poor use of the weights that a step reads.
const MIN_ROWS: usize = 32;
/// Weight of the latest step in the moving average.
const LATEST_WEIGHT: f64 = 0.2;

/// Measured time per row.
#[derive(Debug, Default)]
pub(crate) struct StepBudget {
    /// Zero until the first measurement.
    per_row: Duration,
}

impl StepBudget {
    /// Maximum rows of the next step, in which `decoding` sequences decode. Prompts get some even if these fill the step: of one
    /// row a step a prompt would take minutes.
    pub fn rows(&self, is_streaming: bool, decoding: usize) -> usize {
        if !is_streaming || self.per_row.is_zero() {
            return usize::MAX;
        }
        let rows = STREAMING_STEP.as_nanos() / self.per_row.as_nanos();
        usize::try_from(rows).unwrap_or(usize::MAX).max(MIN_ROWS).max(decoding + PROMPT_ROWS)
    }

    /// Records the duration of a step. Small steps read all weights for few rows and say nothing about large ones.
    pub fn learn(&mut self, rows: usize, took: Duration) {
        if rows < MIN_ROWS {
            return;
        }
        let now = took.div_f64(rows as f64);
        let before = if self.per_row.is_zero() { now } else { self.per_row };
        self.per_row = before.mul_f64(1.0 - LATEST_WEIGHT) + now.mul_f64(LATEST_WEIGHT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_small_only_while_replies_are_streamed() {
        let mut budget = StepBudget::default();
        assert_eq!(budget.rows(true, 1), usize::MAX, "nothing is measured yet");
        budget.learn(1, Duration::from_secs(9));
        assert_eq!(budget.rows(true, 1), usize::MAX, "a single row says nothing");
        budget.learn(100, Duration::from_millis(100));
        assert_eq!((budget.rows(false, 1), budget.rows(true, 1)), (usize::MAX, 60));
        (0..100).for_each(|_| budget.learn(100, Duration::from_secs(10)));
        assert_eq!(budget.rows(true, 1), MIN_ROWS);
        assert_eq!(budget.rows(true, 31), 31 + PROMPT_ROWS, "prompts are not left one row");
    }
}
