//! The memory and time of a child process: limited by the system where it can (Linux); the memory is measured everywhere.

use std::io;
use std::process::Child;
use std::time::Duration;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Limits a running process: allocations beyond the address space fail, and the system kills it when it has used `time` on
/// all processors.
///
/// # Errors
/// If the system refuses; a process that has ended already is none.
#[cfg(target_os = "linux")]
pub(crate) fn set(process: &mut Child, memory_bytes: u64, time: Duration) -> io::Result<()> {
    use std::thread::available_parallelism;

    use rlimit::{Resource, prlimit};

    let pid = i32::try_from(process.id()).map_err(io::Error::other)?;
    // The system counts whole seconds, those of all threads together. A process of a parent that lives is never killed by this:
    // the parent ends it at `time`.
    let threads = available_parallelism().map_or(1, |threads| threads.get() as u64);
    let seconds = time.as_secs().saturating_add(1).saturating_mul(threads);
    // A limit that was set before is never raised.
    let limit = |resource, most: u64| {
        let (mut soft, mut hard) = (0, 0);
        prlimit(pid, resource, None, Some((&mut soft, &mut hard)))?;
        let most = most.min(hard);
        prlimit(pid, resource, Some((most, most)), None)
    };
    match limit(Resource::AS, memory_bytes).and_then(|()| limit(Resource::CPU, seconds)) {
        Err(_) if process.try_wait()?.is_some() => Ok(()),
        limited => limited,
    }
}

/// Other systems cannot limit a running process.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn set(_process: &mut Child, _memory_bytes: u64, _time: Duration) -> io::Result<()> {
    Ok(())
}

/// Has the system kill this process when its parent ends. The parent waits for it in the thread that has started it, which
/// is the thread that counts.
#[cfg(target_os = "linux")]
pub(crate) fn end_with_parent() -> io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};

    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Other systems cannot do this.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(())
}

/// Measures the resident memory of one process.
pub(crate) struct Watch {
    system: System,
    pid: Pid,
}

impl Watch {
    pub fn of(process: &Child) -> Self {
        Watch { system: System::new(), pid: Pid::from_u32(process.id()) }
    }

    /// The resident memory now; 0 if the process has ended.
    pub fn resident_bytes(&mut self) -> u64 {
        let what = ProcessRefreshKind::nothing().with_memory().without_tasks();
        self.system.refresh_processes_specifics(ProcessesToUpdate::Some(&[self.pid]), true, what);
        self.system.process(self.pid).map_or(0, sysinfo::Process::memory)
    }
}
