//! Where data live.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use models::fetch::FetchOptions;
use store::{Corpora, Postgres};

use crate::args::Machine;
use crate::failure::refusal;

/// The data folder: `--data-dir`, MEMLOCAL_HOME, or where the platform puts such things.
pub fn folder(machine: &Machine) -> Result<PathBuf> {
    folder_of(machine.data_dir.as_deref())
}

/// The data folder where this one is named, if any.
pub fn folder_of(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = named.map(Path::to_owned).or_else(from_environment) {
        return Ok(folder);
    }
    let folders = directories::ProjectDirs::from("", "", "memlocal").context("this user has no home folder")?;
    Ok(folders.data_dir().to_owned())
}

/// The data folder that the environment names.
pub fn from_environment() -> Option<PathBuf> {
    env::var_os("MEMLOCAL_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The corpora in the data folder.
pub fn corpora(machine: &Machine) -> Result<Corpora> {
    Ok(Corpora::new(folder(machine)?).with_vectors(vectors(machine)?))
}

/// The database in which corpora are shared, if one is named.
///
/// # Errors
/// Offline, unless it is on this machine.
pub fn vectors(machine: &Machine) -> Result<Option<Arc<Postgres>>> {
    let Some(url) = &machine.vectors else { return Ok(None) };
    let postgres = Postgres::at(url)?;
    if is_offline(machine) && !postgres.is_local() {
        return Err(refusal(
            format!("offline, and {} is not on this machine", postgres.place()),
            "offline only a database on this machine may be asked: by a socket in its file system, or by loopback",
        ));
    }
    Ok(Some(postgres))
}

/// How models are found: everything is allowed but what `--offline` or HF_HUB_OFFLINE forbids.
pub fn fetching(machine: &Machine) -> Result<FetchOptions> {
    let mut options = FetchOptions::new(folder(machine)?.join("models"));
    options.offline = is_offline(machine);
    Ok(options)
}

fn is_offline(machine: &Machine) -> bool {
    let set = |value: String| !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off");
    machine.offline || env::var("HF_HUB_OFFLINE").is_ok_and(set)
}
