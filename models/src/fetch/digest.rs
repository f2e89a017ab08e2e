//! Computing digests while copying, and holding files against what is known of them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{FetchError, Progress, Report};
use crate::manifest::{FileSpec, Sha256Hex};

const BUFFER_BYTES: usize = 1 << 20;

/// What a file turned out to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digested {
    pub bytes: u64,
    pub sha256: Sha256Hex,
}

impl Digested {
    /// Says whether `path`, which holds this, is what the manifest states.
    pub fn check(&self, path: &Path, spec: &FileSpec) -> Result<(), FetchError> {
        check_size(path, spec.bytes, self.bytes)?;
        match &spec.sha256 {
            Some(expected) if *expected != self.sha256 => Err(FetchError::WrongDigest {
                path: path.to_owned(),
                expected: expected.clone(),
                found: self.sha256.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// Says whether `path`, which has `found_bytes`, has the expected length, where one is known.
pub(super) fn check_size(path: &Path, expected_bytes: Option<u64>, found_bytes: u64) -> Result<(), FetchError> {
    match expected_bytes {
        Some(expected_bytes) if expected_bytes != found_bytes => {
            Err(FetchError::WrongSize { path: path.to_owned(), expected_bytes, found_bytes })
        }
        _ => Ok(()),
    }
}

/// Which side of a copy failed.
#[derive(Debug)]
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Copies everything and computes the digest on the way; `on_bytes` receives the total after each buffer.
pub(super) fn copy_digesting(
    from: &mut impl Read,
    to: &mut impl Write,
    mut on_bytes: impl FnMut(u64),
) -> Result<Digested, CopyError> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        to.write_all(&buffer[..read]).map_err(CopyError::Write)?;
        hasher.update(&buffer[..read]);
        bytes += read as u64;
        on_bytes(bytes);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    Ok(Digested { bytes, sha256: digest.into() })
}

/// Reads a file to compute its digest.
pub(super) fn digest_file(path: &Path, name: &str, report: &mut Report<'_>) -> Result<Digested, FetchError> {
    let from_disk = |error| FetchError::from_disk(path, error);
    let mut file = File::open(path).map_err(from_disk)?;
    let total_bytes = Some(file.metadata().map_err(from_disk)?.len());
    let on_bytes = |done_bytes| report(Progress { file: name, done_bytes, total_bytes });
    copy_digesting(&mut file, &mut io::sink(), on_bytes).map_err(|error| match error {
        CopyError::Read(error) | CopyError::Write(error) => from_disk(error),
    })
}
