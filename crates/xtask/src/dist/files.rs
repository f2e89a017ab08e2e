//! Reading, writing and digests of files.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| cannot("read", path, &error))
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
    fs::write(path, bytes).map_err(|error| cannot("write", path, &error))?;
    Ok(path.to_owned())
}

pub(crate) fn cannot(act: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {act} {}: {error}", path.display())
}
