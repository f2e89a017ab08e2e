//! How much to do in one step, so that nobody who reads along waits long.

use std::time::Duration;

/// A step in which somebody reads along is to take about as long as this.
const READING: Duration = Duration::from_millis(60);
/// Fewer rows than this make no good use of the weights that a step reads.
const FEWEST_ROWS: usize = 32;
/// Weight of the newest step in the running mean.
const NEWEST: f64 = 0.2;

/// Measured speed of steps.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Zero until something is known.
    per_row: Duration,
}

impl Pace {
    /// Rows that the next step may have.
    pub fn rows(&self, somebody_reads: bool) -> usize {
        if !somebody_reads || self.per_row.is_zero() {
            return usize::MAX;
        }
        let rows = READING.as_nanos() / self.per_row.as_nanos();
        usize::try_from(rows).unwrap_or(usize::MAX).max(FEWEST_ROWS)
    }

    /// Takes in how long a step took. Small steps read the weights for few rows and tell nothing of large ones.
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
