//! From the names of models and adapters to their files, which are fetched if they are not on this disk.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use models::adapter::Adapter;
use models::fetch::{
    FetchOptions, Fetched, HubName, Resolved, fetch, fetch_named, licence_named, locate, locate_named, resolve,
};
use models::manifest::Choice;

use crate::eprintln;
use crate::failure::refusal;
use crate::flags::GlobalFlags;
use crate::home;
use crate::progress::Downloads;

/// The path of a model's weights if they are on this disk, or what is known of the model.
pub(crate) fn found(typed: &str, global: &GlobalFlags) -> Result<Result<PathBuf, Choice<'static>>> {
    let here =
        |fetched: Fetched| fetched.entry().map(ToOwned::to_owned).with_context(|| format!("{typed} has no weights"));
    match resolve(typed)? {
        Resolved::Local(fetched) => here(fetched).map(Ok),
        Resolved::Known(choice) => match locate(choice, &home::fetching(global)?) {
            Some(fetched) => here(fetched).map(Ok),
            None => Ok(Err(choice)),
        },
        Resolved::Named(name) => match locate_named(&name, &home::fetching(global)?) {
            Some(fetched) => here(fetched).map(Ok),
            None => Err(refusal(format!("{name} is not on this disk"), format!("memlocal models pull {name}"))),
        },
    }
}

/// The path of a model's weights, which are fetched if need be.
pub(crate) fn path_of(typed: &str, global: &GlobalFlags) -> Result<PathBuf> {
    let fetched = fetched(typed, global)?;
    fetched.entry().map(ToOwned::to_owned).with_context(|| format!("{typed} has no weights"))
}

/// A model's files, after fetching them if need be.
pub fn fetched(typed: &str, global: &GlobalFlags) -> Result<Fetched> {
    match resolve(typed)? {
        Resolved::Local(fetched) => Ok(fetched),
        Resolved::Known(choice) => known(choice, &home::fetching(global)?),
        Resolved::Named(name) => named(&name, &home::fetching(global)?),
    }
}

/// The path of an adapter, which is fetched if it is a name on the hub and not here.
pub fn adapter_path(path: &Path, global: &GlobalFlags) -> Result<PathBuf> {
    match path.to_str().filter(|typed| typed.starts_with("hf:")) {
        Some(typed) => path_of(typed, global),
        None => Ok(path.to_owned()),
    }
}

/// The licence of an adapter that [`adapter_path`] has found: as the hub states it, or as its files do.
pub fn adapter_licence(typed: &Path, found: &Path, global: &GlobalFlags) -> Result<Option<String>> {
    match typed.to_str().filter(|typed| typed.starts_with("hf:")) {
        Some(name) => Ok(licence_named(&name.parse()?, &home::fetching(global)?)),
        None => Ok(Adapter::licence(found)),
    }
}

/// Finds a known model on this disk, or fetches it and says where it came from.
fn known(choice: Choice<'_>, options: &FetchOptions) -> Result<Fetched> {
    if let Some(fetched) = locate(choice, options) {
        return Ok(fetched);
    }
    let fetched = bring(choice, options)?;
    eprintln!("fetched {choice} {}", fetched.source);
    Ok(fetched)
}

/// Finds a model of the hub on this disk, or fetches it and says where it came from.
fn named(name: &HubName, options: &FetchOptions) -> Result<Fetched> {
    if let Some(fetched) = locate_named(name, options) {
        return Ok(fetched);
    }
    let fetched = bring_named(name, options)?;
    eprintln!("fetched {name} {}", fetched.source);
    Ok(fetched)
}

/// Fetches a model of the hub, with progress, and says its licence.
pub fn bring_named(name: &HubName, options: &FetchOptions) -> Result<Fetched> {
    if !options.offline {
        eprintln!("fetching {name}");
    }
    let mut downloads = Downloads::default();
    let fetched = fetch_named(name, options, &mut |progress| downloads.report(progress))?;
    let licence = licence_named(name, options).unwrap_or_else(|| "none is stated".to_owned());
    eprintln!("licence of {name}: {licence} (https://huggingface.co/{})", name.repo);
    Ok(fetched)
}

/// Fetches a known model, with progress, and says its licence.
pub fn bring(choice: Choice<'_>, options: &FetchOptions) -> Result<Fetched> {
    if !options.offline {
        eprintln!("fetching {choice}, licence {}", choice.manifest.licence);
    }
    let mut downloads = Downloads::default();
    Ok(fetch(choice, options, &mut |progress| downloads.report(progress))?)
}
