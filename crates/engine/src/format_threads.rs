//! Threads that continue replies in output formats.
//!
//! A mask, the validation of a value or the search for a completion takes microseconds to seconds, depending on the format. The
//! engine's thread does none of it: after each step a reply in a format goes to one of these threads, which samples its next tokens and
//! computes the masks of its next rows. Meanwhile steps run without the reply, unless it is expected to be back soon. Tokens do not depend
//! on any of this: a reply is on one thread at a time, and what is computed for it depends on nothing else.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use scheduler::SequenceId;

use crate::generation::{Advance, Generation, StepRows};
use crate::vocabulary::Vocabulary;

/// Steps wait at most this part of their duration for replies in formats, and only for those that took no longer the last time.
const WAITING_SHARE: u32 = 8;
/// Threads for replies that are waited for, as far as there are processors: at least two, so that one reply does not hold up all others.
const THREADS: RangeInclusive<usize> = 2..=16;

/// The number of threads for replies that are waited for.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).clamp(*THREADS.start(), *THREADS.end())
}

/// A reply in an output format, with the results of a step.
pub(crate) struct FormatJob {
    pub id: SequenceId,
    pub generation: Generation,
    pub rows: StepRows,
    pub vocabulary: Arc<Vocabulary>,
    /// If the grammar allows at most this many tokens, only their logits are computed.
    pub masked_outputs: usize,
}

/// The reply after it.
pub(crate) struct Advanced {
    pub id: SequenceId,
    pub generation: Generation,
    pub advance: Advance,
}

impl FormatJob {
    /// Continues the reply.
    pub fn run(self) -> Advanced {
        let FormatJob { id, mut generation, rows, vocabulary, masked_outputs } = self;
        let started = Instant::now();
        let advance = generation.advance(rows, &vocabulary);
        if let Ok(draft) = &advance.draft {
            generation.prepare(draft, masked_outputs, &vocabulary);
        }
        generation.took = started.elapsed();
        Advanced { id, generation, advance }
    }

    /// The same; `None` if the caller no longer awaits the reply. The message that cancels it tells the engine's thread.
    fn run_if_awaited(self) -> Option<Advanced> {
        let is_awaited = |generation: &Generation| !generation.is_abandoned();
        let advanced = is_awaited(&self.generation).then(|| self.run());
        advanced.filter(|advanced| is_awaited(&advanced.generation))
    }
}

/// The threads, and the replies on their way back to the engine's thread. They end when this is dropped.
pub(crate) struct FormatThreads {
    quick: Sender<(usize, FormatJob)>,
    /// For the others, so that they hold up none of those.
    slow: Sender<(usize, FormatJob)>,
    back: Receiver<(usize, Advanced)>,
    /// Replies that the next step waits for.
    awaited: HashSet<SequenceId>,
}

impl FormatThreads {
    /// # Errors
    /// If a thread cannot be started.
    pub fn start() -> io::Result<FormatThreads> {
        let (done, back) = channel();
        let (quick, slow) = (start(threads(), &done)?, start(threads().div_ceil(2), &done)?);
        Ok(FormatThreads { quick, slow, back, awaited: HashSet::new() })
    }

    /// Sends a reply of the model with this index to a thread; `step` is the duration of its step.
    pub fn send(&mut self, model: usize, job: FormatJob, step: Duration) {
        let is_quick = job.generation.took <= step / WAITING_SHARE;
        if is_quick {
            self.awaited.insert(job.id);
        }
        let threads = if is_quick { &self.quick } else { &self.slow };
        threads.send((model, job)).expect("the threads run as long as jobs can be sent");
    }

    /// The next reply that is back, with the index of its model; waits for those that are expected soon after a step of this duration that
    /// ended at a time.
    pub fn next(&mut self, ended: Instant, step: Duration) -> Option<(usize, Advanced)> {
        let back = self.back.try_recv().ok().or_else(|| {
            let left = (step / WAITING_SHARE).saturating_sub(ended.elapsed());
            let is_due = !self.awaited.is_empty() && !left.is_zero();
            is_due.then(|| self.back.recv_timeout(left).ok()).flatten()
        });
        match &back {
            Some((_, Advanced { id, .. })) => {
                self.awaited.remove(id);
            }
            // Those that are late join a later step.
            None => self.awaited.clear(),
        }
        back
    }

    /// The next reply that is back within a time.
    pub fn within(&self, time: Duration) -> Option<(usize, Advanced)> {
        self.back.recv_timeout(time).ok()
    }
}

/// Starts threads that take jobs in turn.
fn start(threads: usize, done: &Sender<(usize, Advanced)>) -> io::Result<Sender<(usize, FormatJob)>> {
    let (sender, jobs) = channel::<(usize, FormatJob)>();
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..threads {
        let (jobs, done) = (Arc::clone(&jobs), done.clone());
        let next = move || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let run = move || {
            while let Ok((model, job)) = next() {
                if let Some(advanced) = job.run_if_awaited() {
                    // The engine has stopped if nothing receives it.
                    let _ = done.send((model, advanced));
                }
            }
        };
        thread::Builder::new().name("format".into()).spawn(run)?;
    }
    Ok(sender)
}

#[cfg(test)]
pub(crate) mod tests;
