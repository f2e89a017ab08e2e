//! Models and adapters of the hub that have no manifest: finding them on this disk, fetching, listing, checking, removing.

use std::fs;
use std::path::Path;

use super::installation::Installation;
use super::shelf::{remove_slot, verify_folder};
use super::slot::Slot;
use super::{FetchError, FetchOptions, Fetched, HubName, Receipt, Report, Verified, hub, hub_cache, receipt};
use crate::manifest::{Format, Role};

/// An installed model or adapter of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name by which it was fetched.
    pub name: HubName,
    /// Its files, its commit and its licence.
    pub receipt: Receipt,
    /// `language`, `embedding` or `adapter`, as its files say.
    pub kind: &'static str,
}

/// Finds a model on this disk, in the models folder or the Hugging Face cache, without asking whether its branch has moved on.
pub fn locate_named(name: &HubName, options: &FetchOptions) -> Option<Fetched> {
    open_installed(name, options).ok().or_else(|| hub_cache::open_named(name, &options.hub_cache))
}

/// Brings a model of the hub onto this disk, or finds it there. All files are of one commit, and of those whose length and
/// digest the hub states, both are checked.
///
/// # Errors
/// [`FetchError::OfflineHub`]; [`FetchError::NotInRepository`]; why the hub or the disk failed.
pub fn fetch_named(name: &HubName, options: &FetchOptions, report: &mut Report<'_>) -> Result<Fetched, FetchError> {
    if let Some(fetched) = locate_named(name, options) {
        return Ok(fetched);
    }
    if options.offline {
        return Err(FetchError::OfflineHub { name: name.to_string() });
    }
    let installation = Installation::begin(Slot::of_name(name), &options.models_dir)?;
    if let Ok(fetched) = open_installed(name, options) {
        return Ok(fetched);
    }
    installation.prepare()?;
    match bring(name, &installation, options, report) {
        Ok((receipt, format)) => installation.finish(&receipt, format),
        Err(error) => {
            installation.abandon();
            Err(error)
        }
    }
}

fn bring(
    name: &HubName,
    installation: &Installation,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<(Receipt, Format), FetchError> {
    let found = hub::look_up(&name.repo, name.revision(), &installation.incoming(), options)?;
    let (format, specs) = found.select(name)?;
    let receipt = hub::bring(&name.repo, &found.commit, &specs, installation, options, report)?;
    Ok((Receipt { name: Some(name.to_string()), licence: found.licence, ..receipt }, format))
}

fn open_installed(name: &HubName, options: &FetchOptions) -> Result<Fetched, FetchError> {
    let folder = Slot::of_name(name).folder(&options.models_dir);
    let found = Receipt::read(&folder)?;
    // Two names can have one folder, such as those of the revisions `a/b` and `a--b`.
    if found.name.as_deref() != Some(&name.to_string()) {
        return Err(FetchError::NotInstalled);
    }
    let format = format_of(&found).ok_or(FetchError::NotInstalled)?;
    receipt::open(&folder, &found, format)
}

/// The licence of an installed model as the hub stated it.
pub fn licence_named(name: &HubName, options: &FetchOptions) -> Option<String> {
    Receipt::read(&Slot::of_name(name).folder(&options.models_dir)).ok()?.licence
}

fn format_of(receipt: &Receipt) -> Option<Format> {
    let weights = receipt.files.iter().find(|file| file.role == Role::Weights)?;
    Some(match Path::new(&weights.name).extension()?.to_str()?.to_lowercase().as_str() {
        "gguf" => Format::Gguf,
        "bin" => Format::Pytorch,
        _ => Format::Safetensors,
    })
}

/// Lists what has been fetched from the hub by name, in the order of the names.
pub fn list_named(options: &FetchOptions) -> Vec<Named> {
    let subfolders = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for folder in subfolders(&options.models_dir).iter().flat_map(|folder| subfolders(folder)) {
        let Ok(receipt) = Receipt::read(&folder) else { continue };
        let Some(Ok(name)) = receipt.name.as_deref().map(str::parse::<HubName>) else { continue };
        if open_installed(&name, options).is_ok() {
            found.push(Named { kind: kind_of(&folder, &receipt), name, receipt });
        }
    }
    found.sort_by_key(|named| named.name.to_string());
    found
}

fn kind_of(folder: &Path, receipt: &Receipt) -> &'static str {
    if receipt.files.iter().any(|file| file.name == "adapter_config.json") {
        return "adapter";
    }
    let config = fs::read_to_string(folder.join("config.json")).unwrap_or_default();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap_or_default();
    let is_encoder = matches!(config["model_type"].as_str(), Some("bert" | "xlm-roberta"));
    if is_encoder { "embedding" } else { "language" }
}

/// Reads every file of an installed model and compares it with its receipt.
///
/// # Errors
/// [`FetchError::NotInstalled`] if there is no receipt; files that can be found but not read.
pub fn verify_named(
    name: &HubName,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Vec<Verified>, FetchError> {
    verify_folder(&Slot::of_name(name).folder(&options.models_dir), &[], report)
}

/// Removes an installed model, or what an unfinished fetch has left.
///
/// # Errors
/// [`FetchError::NotInstalled`] if there is nothing to remove; what the disk says.
pub fn remove_named(name: &HubName, options: &FetchOptions) -> Result<(), FetchError> {
    remove_slot(&Slot::of_name(name), options)
}
