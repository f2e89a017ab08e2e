//! One pool of threads for all kernels: workers spin for a moment, then sleep.
//!
//! A kernel call is some tens of microseconds long and the next one follows at once, so waking a sleeping thread for
//! each would cost more than the work. Workers therefore spin for `SPINS` rounds after a job before they park.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// Rounds of the wait loop before a worker yields to the operating system and parks.
const SPINS: usize = 20_000;

static THREADS: OnceLock<usize> = OnceLock::new();

/// Sets the number of threads; has an effect only before the first kernel runs.
///
/// Returns false if the pool had its size already.
pub fn set_threads(threads: NonZeroUsize) -> bool {
    THREADS.set(threads.get()).is_ok()
}

/// Threads that kernels use, the calling one included.
pub fn threads() -> usize {
    *THREADS.get_or_init(|| thread::available_parallelism().map_or(1, NonZeroUsize::get))
}

/// Calls `work(0)`, `work(1)` … `work(tasks - 1)`, each once, spread over the pool; returns when all are done.
///
/// Tasks are handed out in order, one at a time. Called from within a task, or while another thread uses the pool,
/// it runs on the calling thread alone.
///
/// # Panics
/// Passes on the panic of a task, after the others are done.
pub fn parallel_for(tasks: usize, work: &(dyn Fn(usize) + Sync)) {
    thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });
    let pool = if tasks > 1 && threads() > 1 && !INSIDE.get() { Pool::global().try_claim() } else { None };
    let Some(claim) = pool else { return (0..tasks).for_each(work) };
    INSIDE.set(true);
    let outcome = claim.run(tasks, work);
    INSIDE.set(false);
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

type Panic = Box<dyn std::any::Any + Send>;

/// A job as the workers see it. The reference is valid until `running` is back at zero, for which `run` waits.
#[derive(Clone, Copy)]
struct Job {
    work: &'static (dyn Fn(usize) + Sync),
    tasks: usize,
}

struct Shared {
    /// Grows by one with every job.
    epoch: AtomicUsize,
    job: Mutex<Option<Job>>,
    wake: Condvar,
    /// The next task to hand out.
    next: AtomicUsize,
    /// Workers that have not yet finished the current job.
    running: AtomicUsize,
    panic: Mutex<Option<Panic>>,
}

struct Pool {
    shared: Arc<Shared>,
    workers: usize,
    busy: Mutex<()>,
}

struct Claim<'a> {
    pool: &'a Pool,
    _busy: MutexGuard<'a, ()>,
}

impl Pool {
    fn global() -> &'static Pool {
        static POOL: OnceLock<Pool> = OnceLock::new();
        POOL.get_or_init(|| Pool::start(threads() - 1))
    }

    fn start(workers: usize) -> Pool {
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            job: Mutex::new(None),
            wake: Condvar::new(),
            next: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            panic: Mutex::new(None),
        });
        let mut started = 0;
        for index in 0..workers {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("kernels-{index}"));
            // Fewer threads than wished for is slower, not wrong.
            started += usize::from(thread.spawn(move || shared.serve()).is_ok());
        }
        Pool { shared, workers: started, busy: Mutex::new(()) }
    }

    fn try_claim(&self) -> Option<Claim<'_>> {
        let busy = self.busy.try_lock().ok()?;
        (self.workers > 0).then_some(Claim { pool: self, _busy: busy })
    }
}

impl Claim<'_> {
    fn run(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) -> Result<(), Panic> {
        let shared = &self.pool.shared;
        // SAFETY: only the lifetime changes. No worker touches the job after it has counted itself out of `running`,
        // and this function does not return before `running` is zero.
        let work: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        let job = Job { work, tasks };
        shared.next.store(0, Relaxed);
        shared.running.store(self.pool.workers, Relaxed);
        {
            let mut slot = lock(&shared.job);
            *slot = Some(job);
            shared.epoch.fetch_add(1, Release);
            shared.wake.notify_all();
        }
        shared.take_tasks(job);
        for spins in 0usize.. {
            if shared.running.load(Acquire) == 0 {
                break;
            }
            // A worker may have lost its core to another process.
            if spins % SPINS == SPINS - 1 { thread::yield_now() } else { std::hint::spin_loop() }
        }
        *lock(&shared.job) = None;
        lock(&shared.panic).take().map_or(Ok(()), Err)
    }
}

impl Shared {
    /// A worker's life: wait for the next epoch, help with its job, count itself out.
    fn serve(&self) {
        let mut seen = 0;
        loop {
            seen = self.wait_for_epoch_after(seen);
            let job = *lock(&self.job);
            if let Some(job) = job {
                self.take_tasks(job);
            }
            self.running.fetch_sub(1, Release);
        }
    }

    fn wait_for_epoch_after(&self, seen: usize) -> usize {
        for _ in 0..SPINS {
            let epoch = self.epoch.load(Acquire);
            if epoch != seen {
                return epoch;
            }
            std::hint::spin_loop();
        }
        let mut job = lock(&self.job);
        loop {
            let epoch = self.epoch.load(Acquire);
            if epoch != seen {
                return epoch;
            }
            job = self.wake.wait(job).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take_tasks(&self, job: Job) {
        loop {
            let task = self.next.fetch_add(1, Relaxed);
            if task >= job.tasks {
                return;
            }
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (job.work)(task)));
            if let Err(panic) = done {
                *lock(&self.panic) = Some(panic);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A slice that tasks write disjoint parts of.
///
/// Every kernel splits its output so that no two tasks touch the same element; this type carries that claim across
/// the pool.
pub struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    _slice: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: it is only a way to hand out parts of a `&mut [T]`; see `part`.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    /// Takes a slice apart.
    pub fn new(slice: &'a mut [T]) -> Self {
        Disjoint { start: slice.as_mut_ptr(), len: slice.len(), _slice: std::marker::PhantomData }
    }

    /// The part `start .. start + len`.
    ///
    /// # Safety
    /// While it is alive no other part that overlaps it may be asked for.
    ///
    /// # Panics
    /// If the part does not lie within the slice.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start + len <= self.len, "part {start}+{len} of {}", self.len);
        // SAFETY: in bounds by the assertion; disjoint by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn every_task_runs_once_and_nested_calls_do_not_hang() {
        for tasks in [0, 1, 2, 7, 1000] {
            let counts: Vec<AtomicU32> = (0..tasks).map(|_| AtomicU32::new(0)).collect();
            parallel_for(tasks, &|i| {
                parallel_for(3, &|_| {
                    counts[i].fetch_add(1, Relaxed);
                });
            });
            assert!(counts.iter().all(|count| count.load(Relaxed) == 3), "{tasks} tasks");
        }
    }

    #[test]
    fn a_panicking_task_is_passed_on_and_the_pool_lives() {
        let caught = std::panic::catch_unwind(|| parallel_for(8, &|i| assert!(i != 5, "task five")));
        assert!(caught.is_err());
        every_task_runs_once_and_nested_calls_do_not_hang();
    }

    #[test]
    fn many_threads_may_use_the_pool_at_once() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(every_task_runs_once_and_nested_calls_do_not_hang);
            }
        });
    }
}
