//! A file's bytes, mapped rather than read: pages come in when they are used and may be dropped again.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use bundle::{Bundle, Entry};
use memmap2::{MmapOptions, UncheckedAdvice};

use crate::error::{ModelError, Result};

/// A read-only file in memory.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    bytes: memmap2::Mmap,
    /// The digest of its content, where it is in a bundle.
    bundled: Option<String>,
}

impl MappedFile {
    /// Maps a file, also one in a bundle.
    ///
    /// # Errors
    /// If it cannot be opened or mapped, as an empty file, or is in a bundle and was altered.
    pub fn open(path: &Path) -> Result<MappedFile> {
        let io = |source| ModelError::Io { path: path.to_owned(), source };
        let Some((bundle, name)) = Bundle::holding(path) else {
            let len = path.metadata().map_err(io)?.len();
            return Self::map(path, path, 0, len);
        };
        let entry: &Entry = bundle.find(&name).ok_or_else(|| io(std::io::ErrorKind::NotFound.into()))?;
        let mapped = Self::map(path, bundle.path(), entry.offset, entry.bytes)?;
        bundle.check(entry, &mapped)?;
        Ok(MappedFile { bundled: Some(entry.blake3.clone()), ..mapped })
    }

    /// Maps `len` bytes from `start` of the file at `holder`.
    fn map(path: &Path, holder: &Path, start: u64, len: u64) -> Result<MappedFile> {
        let io = |source| ModelError::Io { path: path.to_owned(), source };
        if len == 0 {
            return Err(ModelError::Damaged { path: path.to_owned(), reason: "it is empty".into() });
        }
        let len = usize::try_from(len).map_err(|_| io(std::io::ErrorKind::OutOfMemory.into()))?;
        let file = File::open(holder).map_err(io)?;
        let mut options = MmapOptions::new();
        // SAFETY: model files are replaced by renaming, never written in place, so the mapping does not change under us.
        #[allow(unsafe_code)]
        let bytes = unsafe { options.offset(start).len(len).map(&file) }.map_err(io)?;
        // Where the file system has them; see `kernels::memory`.
        #[cfg(target_os = "linux")]
        let _ = bytes.advise(memmap2::Advice::HugePage);
        Ok(MappedFile { path: path.to_owned(), bytes, bundled: None })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What changes whenever the content does: the time of change, or in a bundle the digest.
    pub(crate) fn state(&self) -> std::io::Result<String> {
        match &self.bundled {
            Some(digest) => Ok(digest.clone()),
            None => Ok(format!("{:?}", self.path.metadata()?.modified()?)),
        }
    }

    /// Whether the content was compared with a digest when the file was mapped.
    pub(crate) fn is_checked(&self) -> bool {
        self.bundled.is_some()
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
