//! The machine of a measurement, and the memory of processes.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde::{Deserialize, Serialize};

/// The properties of a machine that decide its speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The processor's name, family, model and stepping, if the system reports it.
    pub cpu: Option<String>,
    /// Cores that this process may use.
    pub cores: Option<usize>,
    pub memory_bytes: Option<u64>,
    /// `linux x86_64`.
    pub platform: String,
    /// The kernels in use: those of the CPU and their numerics, or the GPUs ([`name_kernels`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<String>,
}

static KERNELS: OnceLock<String> = OnceLock::new();

/// Names the kernels of this process in all descriptions of the machine from now on.
pub fn name_kernels(kernels: String) {
    let _ = KERNELS.set(kernels);
}

impl Host {
    /// Describes this machine. Processor and memory are known on Linux only.
    pub fn this() -> Host {
        let file = |path| fs::read_to_string(path).unwrap_or_default();
        Host {
            cpu: cpu(&file("/proc/cpuinfo")),
            cores: thread::available_parallelism().ok().map(usize::from),
            memory_bytes: bytes(&file("/proc/meminfo"), "MemTotal"),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernels: KERNELS.get().cloned(),
        }
    }
}

/// The first processor of `/proc/cpuinfo`, since a name alone may be as vague as `AMD EPYC`.
fn cpu(file: &str) -> Option<String> {
    let field = |name| value(file, name);
    let name = field("model name")?;
    let details = field("cpu family").zip(field("model")).zip(field("stepping"));
    Some(details.map_or_else(
        || name.to_owned(),
        |((family, model), stepping)| format!("{name} (family {family}, model {model}, stepping {stepping})"),
    ))
}

/// Peak memory before the last reset.
static EARLIER_PEAK: AtomicU64 = AtomicU64::new(0);

/// Peak memory of this process, if the system reports it.
pub fn peak_memory_bytes() -> Option<u64> {
    let since = peak_since_watch()?;
    Some(EARLIER_PEAK.fetch_max(since, Ordering::Relaxed).max(since))
}

/// Resets the peak of [`peak_since_watch`]. False if the system does not allow it.
pub fn watch_memory() -> bool {
    let _ = peak_memory_bytes();
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Peak memory since the reset, of the whole process.
pub fn peak_since_watch() -> Option<u64> {
    bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM")
}

/// The memory of another process, if the system reports it.
pub fn memory_of(process: u32) -> Option<u64> {
    bytes(&fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS")
}

/// Peak memory of another process, if the system reports it.
pub fn peak_memory_of(process: u32) -> Option<u64> {
    bytes(&fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmHWM")
}

/// The bytes of a line `name: N kB`.
fn bytes(file: &str, name: &str) -> Option<u64> {
    let kibibytes: u64 = value(file, name)?.strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The value in the first line `name : value`.
fn value<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    let pairs = file.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_with_what_tells_it_from_others() {
        fn check(file: &str, expect: Option<&str>) {
            assert_eq!(cpu(file).as_deref(), expect);
        }
        let genoa = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\nprocessor\t: 1\n";
        check(genoa, Some("AMD EPYC (family 25, model 17, stepping 1)"));
        check("model name\t: Some Core\n", Some("Some Core"));
        check("Features\t: fp asimd\n", None);
        check("", None);
    }

    #[test]
    fn memory_is_counted_in_bytes() {
        assert_eq!(bytes("MemTotal:       24641388 kB\nMemFree: 5 kB\n", "MemTotal"), Some(24_641_388 * 1024));
        assert_eq!(bytes("MemTotal: many\n", "MemTotal"), None);
    }
}
