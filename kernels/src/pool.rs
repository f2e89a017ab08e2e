//! The thread pool of all kernels: workers spin briefly, then park.
//!
//! A kernel call takes some tens of microseconds and the next one follows at once, so waking a parked thread for each call
//! would cost more than the work. Workers therefore spin for `SPINS` rounds after a job before they park. The caller never
//! waits for a worker that has not taken a task: if another process occupies its core, the caller does the work alone.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// Rounds of the wait loop before a worker parks, or a waiting caller yields to the operating system.
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
    *THREADS.get_or_init(|| {
        let logical = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        physical_cores().map_or(logical, |cores| cores.min(logical))
    })
}

/// Cores that share no arithmetic units, where the system says so: a second thread of a core only takes turns with the first.
fn physical_cores() -> Option<usize> {
    let processors = std::fs::read_dir("/sys/devices/system/cpu").ok()?;
    let siblings = |processor: std::fs::DirEntry| {
        std::fs::read_to_string(processor.path().join("topology/thread_siblings_list")).ok()
    };
    let cores: std::collections::HashSet<String> = processors.flatten().filter_map(siblings).collect();
    (!cores.is_empty()).then_some(cores.len())
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
    // A panic while holding the lock would poison the pool and leave all later work to one thread.
    drop(claim);
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

type Panic = Box<dyn std::any::Any + Send>;
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// The current job's number, its task count and the next task in one word, so that a task is taken atomically.
///
/// While `next < tasks` the job is unfinished, and its caller has not returned.
#[derive(Clone, Copy)]
struct State {
    epoch: u32,
    tasks: u16,
    next: u16,
}

impl State {
    const MAX_TASKS: usize = u16::MAX as usize;

    fn from_word(word: u64) -> State {
        State { epoch: (word >> 32) as u32, tasks: (word >> 16) as u16, next: word as u16 }
    }

    fn to_word(self) -> u64 {
        u64::from(self.epoch) << 32 | u64::from(self.tasks) << 16 | u64::from(self.next)
    }

    fn has_tasks(self) -> bool {
        self.next < self.tasks
    }
}

struct Shared {
    state: AtomicU64,
    /// Pointer to the work of the current job, owned by its caller.
    work: AtomicPtr<Work<'static>>,
    /// Tasks of the current job that are done.
    done: AtomicUsize,
    /// Workers that are parked or about to park.
    sleepers: AtomicUsize,
    parking: Mutex<()>,
    wake: Condvar,
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
            state: AtomicU64::new(0),
            work: AtomicPtr::new(std::ptr::null_mut()),
            done: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            parking: Mutex::new(()),
            wake: Condvar::new(),
            panic: Mutex::new(None),
        });
        let mut started = 0;
        for index in 0..workers {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("kernels-{index}"));
            // Fewer threads than requested is slower, not wrong.
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
    fn run(&self, tasks: usize, work: Work<'_>) -> Result<(), Panic> {
        // More tasks than a state can count are done in groups.
        let group = tasks.div_ceil(State::MAX_TASKS).max(1);
        let grouped = |index: usize| (index * group..tasks.min((index + 1) * group)).for_each(work);
        self.pool.shared.run(tasks.div_ceil(group) as u16, if group == 1 { work } else { &grouped })
    }
}

impl Shared {
    fn run(&self, tasks: u16, work: Work<'_>) -> Result<(), Panic> {
        // SAFETY: only the lifetime changes. A thread calls the work only for a task that it has taken, and this
        // function does not return before every task is done.
        let mut work: Work<'static> = unsafe { std::mem::transmute(work) };
        let epoch = State::from_word(self.state.load(Relaxed)).epoch.wrapping_add(1);
        self.done.store(0, Relaxed);
        self.work.store(&raw mut work, Relaxed);
        self.state.store(State { epoch, tasks, next: 0 }.to_word(), SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            let _parking = lock(&self.parking);
            self.wake.notify_all();
        }
        self.take_tasks();
        for spins in 0usize.. {
            if self.done.load(Acquire) == usize::from(tasks) {
                break;
            }
            // A worker may have lost its core to another process in the middle of a task.
            if spins % SPINS == SPINS - 1 { thread::yield_now() } else { std::hint::spin_loop() }
        }
        lock(&self.panic).take().map_or(Ok(()), Err)
    }

    /// The loop of a worker thread.
    fn serve(&self) {
        loop {
            self.wait_for_tasks();
            self.take_tasks();
        }
    }

    fn wait_for_tasks(&self) {
        let has_tasks = |order| State::from_word(self.state.load(order)).has_tasks();
        for _ in 0..SPINS {
            if has_tasks(Relaxed) {
                return;
            }
            std::hint::spin_loop();
        }
        let mut parking = lock(&self.parking);
        // Either this load sees the new job, or the caller sees the sleeper.
        self.sleepers.fetch_add(1, SeqCst);
        while !has_tasks(SeqCst) {
            parking = self.wake.wait(parking).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    fn take_tasks(&self) {
        let mut word = self.state.load(Acquire);
        while State::from_word(word).has_tasks() {
            let work = self.work.load(Relaxed);
            let state = State::from_word(word);
            let taken = State { next: state.next + 1, ..state }.to_word();
            // If this succeeds the job has not changed meanwhile, so `work` belongs to it.
            match self.state.compare_exchange_weak(word, taken, Acquire, Acquire) {
                Ok(_) => {
                    // SAFETY: a task of this job is taken and not done, so its caller has not returned from `run`.
                    let work = unsafe { *work };
                    self.do_task(work, usize::from(state.next));
                    word = self.state.load(Acquire);
                }
                Err(now) => word = now,
            }
        }
    }

    fn do_task(&self, work: Work<'_>, task: usize) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(task)));
        if let Err(panic) = outcome {
            *lock(&self.panic) = Some(panic);
        }
        self.done.fetch_add(1, Release);
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
    /// While it is alive no overlapping part may be requested.
    ///
    /// # Panics
    /// If the part is not within the slice.
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
        // An interpreter is some thousand times slower.
        let many: &[usize] = if cfg!(miri) { &[70] } else { &[1000, 70_000] };
        for tasks in [0, 1, 2, 7].iter().chain(many).copied() {
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
    fn work_is_still_shared_after_a_panic() {
        let _ = std::panic::catch_unwind(|| parallel_for(8, &|i| assert!(i != 3, "task three")));
        // Other tests may have the pool just then.
        let shared = || {
            let threads = Mutex::new(std::collections::HashSet::new());
            parallel_for(64, &|_| {
                lock(&threads).insert(thread::current().id());
                thread::sleep(std::time::Duration::from_micros(200));
            });
            lock(&threads).len() > 1
        };
        assert!(threads() == 1 || (0..5000).any(|_| shared()));
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
