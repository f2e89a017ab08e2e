//! A file's bytes, mapped rather than read: pages come in when they are used and may be dropped again.

use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

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
        Ok(MappedFile { path: path.to_owned(), bytes })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
