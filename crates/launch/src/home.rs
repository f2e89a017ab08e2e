//! The data folder, the corpora in it, and where models are found.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use bundle::Bundle;
use models::fetch::FetchOptions;
use store::{Corpora, Postgres};

use crate::failure::refusal;
use crate::flags::GlobalFlags;
use crate::paths::absolute;

/// The data folder: `--data-dir`, MEMLOCAL_HOME, or where the platform puts such things.
pub fn folder(global: &GlobalFlags) -> Result<PathBuf> {
    folder_of(global.data_dir.as_deref())
}

/// The data folder where this one is named, if any.
pub fn folder_of(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = named.map(Path::to_owned).or_else(from_environment) {
        return Ok(folder);
    }
    let folders = directories::ProjectDirs::from("", "", "memlocal");
    let none = || refusal("this user has no home folder", "name a data folder: --data-dir FOLDER, or MEMLOCAL_HOME");
    Ok(folders.ok_or_else(none)?.data_dir().to_owned())
}

/// The data folder that the environment names.
pub fn from_environment() -> Option<PathBuf> {
    env::var_os("MEMLOCAL_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The corpora in the data folder.
pub fn corpora(global: &GlobalFlags) -> Result<Corpora> {
    Ok(Corpora::new(folder(global)?).with_vectors(vectors(global)?).with_bundle(bundle(global)?))
}

/// The bundle that is named, or this program if it is one.
///
/// # Errors
/// If it is none, was altered or is cut off.
pub fn bundle(global: &GlobalFlags) -> Result<Option<Arc<Bundle>>> {
    bundle_of(global.bundle.as_deref())
}

/// The bundle where this one is named, if any.
pub(crate) fn bundle_of(named: Option<&Path>) -> Result<Option<Arc<Bundle>>> {
    let bundle = match named {
        Some(path) => Some(Bundle::open(&absolute(path))?),
        None => Bundle::of_this_program()?,
    };
    Ok(bundle.map(Arc::new))
}

/// The database in which corpora are shared, if one is named.
///
/// # Errors
/// Offline, unless it is on this machine.
pub fn vectors(global: &GlobalFlags) -> Result<Option<Arc<Postgres>>> {
    let Some(url) = &global.vectors else { return Ok(None) };
    let postgres = Postgres::at(url)?;
    if is_offline(global) && !postgres.is_local() {
        return Err(refusal(
            format!("offline, and {} is not on this machine", postgres.place()),
            "offline only a database on this machine may be asked: by a socket in its file system, or by loopback",
        ));
    }
    Ok(Some(postgres))
}

/// How models are found; `--offline` and HF_HUB_OFFLINE forbid the network.
pub fn fetching(global: &GlobalFlags) -> Result<FetchOptions> {
    let mut options = FetchOptions::new(folder(global)?.join("models"));
    options.offline = is_offline(global);
    options.bundle = bundle(global)?.map(|bundle| bundle.path().to_owned());
    Ok(options)
}

/// Whether no other machine may be connected to.
pub fn is_offline(global: &GlobalFlags) -> bool {
    let set = |value: String| !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off");
    global.offline || env::var("HF_HUB_OFFLINE").is_ok_and(set)
}
