//! The binary to be packaged: its architecture, and the glibc and shared libraries that it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{cannot, read};

pub(crate) struct Binary {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    /// As the kernel names it: `x86_64`, `aarch64`.
    pub architecture: &'static str,
    /// The newest version of glibc whose symbols it uses; `None` for a static binary.
    pub glibc: Option<(u32, u32)>,
}

impl Binary {
    pub fn read(path: &Path) -> Result<Binary, String> {
        let path = fs::canonicalize(path).map_err(|error| cannot("read", path, &error))?;
        let bytes = read(&path)?;
        let architecture = match bytes.get(..20) {
            Some([0x7f, b'E', b'L', b'F', .., machine, 0]) => match machine {
                62 => "x86_64",
                183 => "aarch64",
                other => return Err(format!("{} is for the ELF machine {other}", path.display())),
            },
            // A stand-in that is a script runs on the machine at hand.
            _ if bytes.starts_with(b"#!") => std::env::consts::ARCH,
            _ => return Err(format!("{} is no Linux program", path.display())),
        };
        let glibc = newest_glibc(&bytes);
        Ok(Binary { path, bytes, architecture, glibc })
    }

    /// The architecture in the names of Debian and of container images.
    pub fn short_architecture(&self) -> &'static str {
        if self.architecture == "aarch64" { "arm64" } else { "amd64" }
    }

    /// Paths of the shared libraries and of the dynamic loader, as this machine has them.
    ///
    /// # Errors
    /// If `ldd` does not find one of them.
    pub fn libraries(&self) -> Result<Vec<PathBuf>, String> {
        if self.glibc.is_none() {
            return Ok(Vec::new());
        }
        let output =
            Command::new("ldd").arg(&self.path).output().map_err(|error| format!("cannot run ldd: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || text.contains("not found") {
            return Err(format!("ldd does not find every library of {}: {text}", self.path.display()));
        }
        let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
        Ok(text.lines().filter_map(path).collect())
    }
}

/// The newest `GLIBC_2.N` among the strings of a binary.
fn newest_glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let starts = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let versions = starts.filter_map(|(at, _)| {
        let rest = &bytes[at + MARK.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        let mut numbers = std::str::from_utf8(&rest[..end]).ok()?.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn the_newest_glibc_is_found_by_number_not_by_text() {
        assert_eq!(newest_glibc(b"x\0GLIBC_2.9\0GLIBC_2.28\0GLIBC_PRIVATE\0GLIBC_2.2.5\0"), Some((2, 28)));
        assert_eq!(newest_glibc(b"static"), None);
    }
}
