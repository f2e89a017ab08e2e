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
pub(super) struct Voice<'a>(Mutex<Telling<'a>>);

struct Telling<'a> {
    /// The part whose preparation is reported.
    part: Option<usize>,
    progress: &'a mut (dyn FnMut(Progress) + Send),
}

impl<'a> Voice<'a> {
    pub fn new(progress: &'a mut (dyn FnMut(Progress) + Send)) -> Voice<'a> {
        Voice(Mutex::new(Telling { part: None, progress }))
    }

    pub fn say(&self, progress: Progress) {
        (self.lock().progress)(progress);
    }

    /// Reports a step of a part's preparation unless another part is being reported.
    pub fn say_of(&self, part: usize, step: memory::Progress) {
        let mut telling = self.lock();
        if *telling.part.get_or_insert(part) == part {
            (telling.progress)(Progress::Preparing(step));
        }
    }

    /// Lets another part report.
    pub fn end(&self, part: usize) {
        let mut telling = self.lock();
        telling.part = telling.part.filter(|told| *told != part);
    }

    fn lock(&self) -> MutexGuard<'_, Telling<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
