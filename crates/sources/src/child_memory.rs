//! The memory of a child process: limited by the system where it can (Linux), and measured everywhere.

use std::io;
use std::process::Child;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Limits the address space of a running process: allocations beyond it fail.
///
/// # Errors
/// If the system refuses; a process that has ended already is none.
#[cfg(target_os = "linux")]
pub(crate) fn limit_address_space(process: &mut Child, bytes: u64) -> io::Result<()> {
    let pid = i32::try_from(process.id()).map_err(io::Error::other)?;
    match rlimit::prlimit(pid, rlimit::Resource::AS, Some((bytes, bytes)), None) {
        Err(_) if process.try_wait()?.is_some() => Ok(()),
        limited => limited,
    }
}

/// Other systems have no such limit, or do not enforce it.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn limit_address_space(_process: &mut Child, _bytes: u64) -> io::Result<()> {
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
