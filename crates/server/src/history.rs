//! The last states of the engine, for charts that begin before a page was opened.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use calls::ModelState;

pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(2);

/// Five minutes.
const MAX_SAMPLES: usize = 150;

/// The last states, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Vec<ModelState>>>);

impl History {
    pub fn samples(&self) -> Vec<Vec<ModelState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub fn push(&self, states: Vec<ModelState>) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(states);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_history_drops_its_oldest_sample() {
        let history = History::default();
        for steps in 0..=MAX_SAMPLES as u64 {
            history.push(vec![ModelState { steps, ..ModelState::default() }]);
        }
        let steps: Vec<u64> = history.samples().iter().map(|sample| sample[0].steps).collect();
        assert_eq!(steps, (1..=MAX_SAMPLES as u64).collect::<Vec<_>>());
    }
}
