//! Limits the rows of a step while replies are streamed, which bounds inter-token latency.

use std::time::Duration;

/// Target duration of a step while replies are streamed.
const READING: Duration = Duration::from_millis(60);
/// Minimum rows: fewer make poor use of the weights that a step reads.
const FEWEST_ROWS: usize = 32;
/// Weight of the latest step in the moving average.
const NEWEST: f64 = 0.2;

/// Measured time per row.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Zero until the first measurement.
    per_row: Duration,
}

impl Pace {
    /// Maximum rows of the next step.
    pub fn rows(&self, somebody_reads: bool) -> usize {
        if !somebody_reads || self.per_row.is_zero() {
            return usize::MAX;
        }
        let rows = READING.as_nanos() / self.per_row.as_nanos();
        usize::try_from(rows).unwrap_or(usize::MAX).max(FEWEST_ROWS)
    }

    /// Records the duration of a step. Small steps read all weights for few rows and say nothing about large ones.
    pub fn learn(&mut self, rows: usize, took: Duration) {
        if rows < FEWEST_ROWS {
            return;
        }
        let now = took.div_f64(rows as f64);
        let before = if self.per_row.is_zero() { now } else { self.per_row };
        self.per_row = before.mul_f64(1.0 - NEWEST) + now.mul_f64(NEWEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_small_only_where_somebody_reads() {
        let mut pace = Pace::default();
        assert_eq!(pace.rows(true), usize::MAX, "nothing is known yet");
        pace.learn(1, Duration::from_secs(9));
        assert_eq!(pace.rows(true), usize::MAX, "a single row tells nothing");
        pace.learn(100, Duration::from_millis(100));
        assert_eq!((pace.rows(false), pace.rows(true)), (usize::MAX, 60));
        (0..100).for_each(|_| pace.learn(100, Duration::from_secs(10)));
        assert_eq!(pace.rows(true), FEWEST_ROWS);
    }
}
