//! A file's bytes, mapped rather than read: pages come in when they are used and may be dropped again.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::{Mmap, UncheckedAdvice};

use crate::error::{ModelError, Result};

/// A read-only file in memory.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    bytes: Mmap,
}

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    /// If it cannot be opened or mapped; an empty file cannot.
    pub fn open(path: &Path) -> Result<MappedFile> {
        let io = |source| ModelError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            return Err(ModelError::Damaged { path: path.to_owned(), reason: "it is empty".into() });
        }
        // SAFETY: model files are replaced by renaming, never written in place, so the mapping does not change under us.
        #[allow(unsafe_code)]
        let bytes = unsafe { Mmap::map(&file) }.map_err(io)?;
        // Where the file system has them; see `kernels::memory`.
        #[cfg(target_os = "linux")]
        let _ = bytes.advise(memmap2::Advice::HugePage);
        Ok(MappedFile { path: path.to_owned(), bytes })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Releases the memory of some bytes; a later read loads them from the file again.
    pub(crate) fn let_go(&self, bytes: Range<usize>) {
        // SAFETY: the mapping is of a file and is never written, so what is dropped comes back as it was.
        #[allow(unsafe_code)]
        let advised = unsafe { self.bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, bytes.start, bytes.len()) };
        if let Err(error) = advised {
            tracing::debug!(path = %self.path.display(), %error, "the mapping stays in memory");
        }
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
