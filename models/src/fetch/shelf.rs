//! What is installed, what could be, whether it is still sound, and taking it away.

use std::fs;
use std::path::{Path, PathBuf};

use super::digest::digest_file;
use super::slot::{Slot, lock};
use super::{FetchError, FetchOptions, Fetched, Receipt, Report, SourceUsed, find_on_disk};
use crate::manifest::{Choice, FileSpec, Sha256Hex, built_in};

/// A variant of a built-in model and its installation state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The variant.
    pub choice: Choice<'static>,
    /// Whether it is here.
    pub state: State,
}

/// The installation state of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// In the models folder, whole, with this receipt.
    Installed(Receipt),
    /// In the bundle.
    Bundled,
    /// In the Hugging Face cache, whole.
    Cached(SourceUsed),
    /// Not on this disk, or not whole.
    Absent,
}

/// Lists every variant of every built-in model, in the order of the manifests.
pub fn list(options: &FetchOptions) -> Vec<Listed> {
    let choices = built_in()
        .iter()
        .flat_map(|manifest| manifest.variants.iter().map(move |variant| Choice { manifest, variant }));
    choices.map(|choice| Listed { choice, state: state_of(choice, options) }).collect()
}

fn state_of(choice: Choice<'_>, options: &FetchOptions) -> State {
    match locate(choice, options) {
        None => State::Absent,
        Some(Fetched { source: SourceUsed::Installed { folder }, .. }) => {
            Receipt::read(&folder).map_or(State::Absent, State::Installed)
        }
        Some(Fetched { source: SourceUsed::Bundle { .. }, .. }) => State::Bundled,
        Some(fetched) => State::Cached(fetched.source),
    }
}

/// Finds a model on this disk, installed or in the Hugging Face cache, without fetching anything.
pub fn locate(choice: Choice<'_>, options: &FetchOptions) -> Option<Fetched> {
    find_on_disk(choice, options).ok()
}

/// What has become of an installed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The file.
    pub path: PathBuf,
    /// What has become of it.
    pub verdict: Verdict,
}

/// What has become of an installed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds what was installed and what the manifest states.
    Sound,
    /// It is gone.
    Missing,
    /// It holds something else.
    Changed {
        /// The digest it should have.
        expected: Sha256Hex,
        /// The digest it has.
        found: Sha256Hex,
    },
}

/// Reads every file of an installed model and holds it against the receipt and, where that states a digest, against the
/// manifest.
///
/// # Errors
///
/// [`FetchError::NotInstalled`] if there is no receipt; files that can be found but not read.
pub fn verify(
    choice: Choice<'_>,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Vec<Verified>, FetchError> {
    verify_folder(&Slot::of(choice).folder(&options.models_dir), &choice.variant.files, report)
}

/// Compares the files of a folder with its receipt and with the digests that are stated.
pub(super) fn verify_folder(
    folder: &Path,
    stated: &[FileSpec],
    report: &mut Report<'_>,
) -> Result<Vec<Verified>, FetchError> {
    let receipt = Receipt::read(folder)?;
    let mut verified = Vec::with_capacity(receipt.files.len());
    for file in &receipt.files {
        let path = folder.join(&file.name);
        let spec = stated.iter().find(|spec| spec.name == file.name);
        let stated = spec.and_then(|spec| spec.sha256.as_ref());
        let verdict = if path.is_file() {
            let found = digest_file(&path, &file.name, report)?.sha256;
            let broken = [Some(&file.sha256), stated].into_iter().flatten().find(|expected| **expected != found);
            broken.cloned().map_or(Verdict::Sound, |expected| Verdict::Changed { expected, found })
        } else {
            Verdict::Missing
        };
        verified.push(Verified { path, verdict });
    }
    Ok(verified)
}

/// Takes an installed model, or what an unfinished fetch has left, off the disk. The Hugging Face cache is not ours to
/// empty.
///
/// # Errors
///
/// [`FetchError::NotInstalled`] if there is nothing to take away; what the disk says.
pub fn remove(choice: Choice<'_>, options: &FetchOptions) -> Result<(), FetchError> {
    remove_slot(&Slot::of(choice), options)
}

pub(super) fn remove_slot(slot: &Slot, options: &FetchOptions) -> Result<(), FetchError> {
    let folder = slot.folder(&options.models_dir);
    if !folder.exists() {
        return Err(FetchError::NotInstalled);
    }
    let _lock = lock(slot, &options.models_dir)?;
    // The receipt goes first, so that a removal that is broken off leaves no model behind that looks whole.
    Receipt::clear(&folder)?;
    fs::remove_dir_all(&folder).map_err(|error| FetchError::from_disk(&folder, error))?;
    slot.remove_if_empty(&options.models_dir);
    Ok(())
}
