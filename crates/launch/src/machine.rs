//! What this machine has: free memory, space on a disk, a folder that can be written, a device that opens, a hub that answers.

use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::device::Computing;
use crate::flags::GlobalFlags;
pub use crate::memory_budget::free_bytes as free_memory_bytes;

/// How long the hub may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens the device that the flags name, and says which it is.
///
/// # Errors
/// If there is no such GPU, this build has no support for GPUs, or the backend does not compute on it.
pub fn open_device(flags: &GlobalFlags) -> Result<&'static str> {
    Ok(if Computing::of(flags)?.device.is_cpu() { "the CPU" } else { "a GPU" })
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

/// The hub from which models are fetched: the one that `HF_ENDPOINT` names, or huggingface.co.
pub fn hub_address() -> String {
    let named = std::env::var("HF_ENDPOINT").ok().filter(|address| !address.is_empty());
    named.unwrap_or_else(|| "https://huggingface.co".to_owned())
}

/// Opens a connection to the hub at this address, and closes it again.
///
/// # Errors
/// If the address is none, its name is not known, or nothing answers in time.
pub fn reach(address: &str) -> Result<()> {
    let mut last = None;
    for place in host_and_port(address)?.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    last.map_or_else(|| anyhow::bail!("its name has no address"), |error| Err(error.into()))
}

/// The host of an address, with the port of its scheme if it names none.
fn host_and_port(address: &str) -> Result<String> {
    let (scheme, rest) = address.split_once("://").context("it has no scheme")?;
    let host = rest.split('/').next().unwrap_or(rest);
    // An address of IPv6 has colons of its own, within brackets.
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let port = if scheme == "http" { 80 } else { 443 };
    Ok(if has_port { host.to_owned() } else { format!("{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_hub_is_reached_if_it_listens() {
        let hub = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/mirror", hub.local_addr().unwrap());
        reach(&address).unwrap();
        // Nothing listens on port 1, and no system chooses it.
        assert!(reach("http://127.0.0.1:1/mirror").unwrap_err().to_string().contains("refused"));
        assert!(reach("huggingface").is_err());
    }

    #[test]
    fn a_host_without_a_port_has_that_of_its_scheme() {
        let check = |address: &str, want: &str| assert_eq!(host_and_port(address).unwrap(), want);
        check("https://huggingface.co", "huggingface.co:443");
        check("http://mirror.home/hf", "mirror.home:80");
        check("http://mirror.home:8080/hf", "mirror.home:8080");
        check("http://[fd00::7]/hf", "[fd00::7]:80");
        check("https://[fd00::7]:8443", "[fd00::7]:8443");
        assert!(host_and_port("huggingface").is_err());
    }

    #[test]
    fn a_folder_has_free_space_and_can_be_written() {
        let folder = std::env::temp_dir();
        assert!(free_disk_bytes(&folder).is_some_and(|bytes| bytes > 0));
        try_to_write(&folder).unwrap();
        assert!(try_to_write(&folder.join("missing")).is_err());
        assert_eq!(nearest_existing(&folder.join("missing/deep")).as_deref(), Some(folder.as_path()));
    }
}
