//! What this machine has: free memory, space on a disk, a folder that can be written, a device that opens.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::device::device;
use crate::flags::Gpu;
pub use crate::memory_budget::free_bytes as free_memory_bytes;

/// Opens the device that the flags name, and says which it is.
///
/// # Errors
/// If there is no such GPU, or this build has no support for GPUs.
pub fn open_device(gpu: Gpu) -> Result<&'static str> {
    Ok(if device(gpu)?.is_cpu() { "the CPU" } else { "a GPU" })
}

/// The folder itself, or the nearest one above it that exists.
pub fn nearest_existing(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned)
}

/// Free space on the disk of a folder that exists; `None` if the system does not report it.
#[cfg(unix)]
pub fn free_disk_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// Free space on the disk of a folder that exists; not known on this platform.
#[cfg(not(unix))]
pub fn free_disk_bytes(_: &Path) -> Option<u64> {
    None
}

/// Creates and removes a file in a folder that exists.
///
/// # Errors
/// What the system says.
pub fn try_to_write(folder: &Path) -> std::io::Result<()> {
    let probe = folder.join(format!(".memlocal-doctor-{}", std::process::id()));
    let written = fs::File::options().write(true).create_new(true).open(&probe).map(drop);
    written.and_then(|()| fs::remove_file(&probe))
}
