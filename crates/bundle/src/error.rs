//! Why a bundle cannot be used or made.

use std::io;
use std::path::PathBuf;

/// What can go wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no trailer at the end of the file.
    #[error("{} is no bundle, or is cut off", path.display())]
    NotABundle { path: PathBuf },
    /// The bundle is not as it was written.
    #[error("the bundle {} was altered: {what}", path.display())]
    Altered { path: PathBuf, what: String },
    /// The executable is not that of memlocal.
    #[error("{} is no executable of memlocal that can carry files", path.display())]
    NotAnExecutable { path: PathBuf },
    /// The operating system refused.
    #[error("cannot use {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
