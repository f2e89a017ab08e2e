//! The state of a model, published by the engine's thread after every step.
//!
//! # Cost
//! A step copies a few numbers under a lock that is never held longer than that.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use calls::ModelState;

/// Time constant of the exponential moving averages of rates.
const WINDOW: Duration = Duration::from_secs(10);

/// The published state of one model.
#[derive(Debug)]
pub(crate) struct PublishedState(Mutex<Published>);

#[derive(Debug)]
struct Published {
    state: ModelState,
    at: Instant,
}

impl PublishedState {
    pub fn new(model: &str) -> PublishedState {
        let state = ModelState { model: model.to_owned(), ..ModelState::default() };
        PublishedState(Mutex::new(Published { state, at: Instant::now() }))
    }

    /// Publishes a new state; its rates follow from the differences to the last one.
    pub fn publish(&self, mut state: ModelState, now: Instant) {
        let mut published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept(now - published.at);
        let rate = |before: f64, more: u64| before * kept + more as f64 / WINDOW.as_secs_f64();
        let old = &published.state;
        state.read_tokens_per_second = rate(old.read_tokens_per_second, state.read_tokens - old.read_tokens);
        state.written_tokens_per_second =
            rate(old.written_tokens_per_second, state.written_tokens - old.written_tokens);
        *published = Published { state, at: now };
    }

    /// The last published state; rates decay while the model is idle.
    pub fn get(&self, now: Instant) -> ModelState {
        let published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut state, kept) = (published.state.clone(), kept(now - published.at));
        state.read_tokens_per_second *= kept;
        state.written_tokens_per_second *= kept;
        state
    }
}

/// The fraction of a rate that remains after some time.
fn kept(elapsed: Duration) -> f64 {
    (-elapsed.as_secs_f64() / WINDOW.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_published_and_decays_when_the_work_ends() {
        let (start, watch) = (Instant::now(), PublishedState::new("m"));
        // Five tokens every tenth of a second, for two minutes.
        for step in 1..=1200_u64 {
            let state = ModelState { written_tokens: 5 * step, steps: step, ..ModelState::default() };
            watch.publish(state, start + Duration::from_millis(100 * step));
        }
        let rate = |seconds| watch.get(start + Duration::from_secs(seconds)).written_tokens_per_second;
        assert!((rate(120) - 50.0).abs() < 1.0, "{}", rate(120));
        assert!((rate(130) - 50.0 / std::f64::consts::E).abs() < 1.0, "{}", rate(130));
        assert!(rate(300) < 0.01);
        assert_eq!(watch.get(start).read_tokens_per_second, 0.0);
    }
}
