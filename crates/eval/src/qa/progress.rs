//! Progress of a run, reported from concurrent work.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A step of the preparation of one case; of concurrent cases only one is reported.
    Preparing(memory::Progress),
    /// Answered questions, of all questions for this model.
    Asked { done: usize, of: usize },
}

/// Reports progress.
pub(super) struct Reporter<'a>(Mutex<State<'a>>);

struct State<'a> {
    /// The part whose preparation is reported.
    part: Option<usize>,
    progress: &'a mut (dyn FnMut(Progress) + Send),
}

impl<'a> Reporter<'a> {
    pub fn new(progress: &'a mut (dyn FnMut(Progress) + Send)) -> Reporter<'a> {
        Reporter(Mutex::new(State { part: None, progress }))
    }

    pub fn asked(&self, done: usize, of: usize) {
        (self.lock().progress)(Progress::Asked { done, of });
    }

    /// Reports a step of a part's preparation unless another part is being reported.
    pub fn preparing(&self, part: usize, step: memory::Progress) {
        let mut state = self.lock();
        if *state.part.get_or_insert(part) == part {
            (state.progress)(Progress::Preparing(step));
        }
    }

    /// Ends the preparation of a part: another one may be reported.
    pub fn prepared(&self, part: usize) {
        let mut state = self.lock();
        state.part = state.part.filter(|reported| *reported != part);
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
