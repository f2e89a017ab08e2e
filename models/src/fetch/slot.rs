//! The folder of a model below that of the models, and its lock.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::error::FetchError;
use super::name::HubName;
use crate::manifest::Choice;

/// The two levels of a folder below that of the models: `<name>/<variant>`.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    name: String,
    variant: String,
}

impl Slot {
    pub fn of(choice: Choice<'_>) -> Slot {
        Slot { name: choice.manifest.name.clone(), variant: choice.variant.name.clone() }
    }

    pub fn of_name(name: &HubName) -> Slot {
        let (name, variant) = name.folders();
        Slot { name, variant }
    }

    pub fn folder(&self, models_dir: &Path) -> PathBuf {
        models_dir.join(&self.name).join(&self.variant)
    }

    /// Removes the folders that are empty.
    pub fn remove_if_empty(&self, models_dir: &Path) {
        remove_if_empty(&self.folder(models_dir));
        remove_if_empty(&models_dir.join(&self.name));
    }
}

/// Waits until no other process fills or empties the folder, and keeps them out until the file is dropped.
pub(super) fn lock(slot: &Slot, models_dir: &Path) -> Result<File, FetchError> {
    let folder = models_dir.join(".locks");
    create_folder(&folder)?;
    let path = folder.join(format!("{}_{}.lock", slot.name, slot.variant));
    let from_disk = |error| FetchError::from_disk(&path, error);
    let file = File::options().create(true).append(true).open(&path).map_err(from_disk)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            tracing::info!("another process is fetching {}/{}: waiting for it", slot.name, slot.variant);
            file.lock().map_err(from_disk)?;
        }
        Err(TryLockError::Error(error)) => return Err(from_disk(error)),
    }
    Ok(file)
}

pub(super) fn create_folder(path: &Path) -> Result<(), FetchError> {
    fs::create_dir_all(path).map_err(|error| FetchError::from_disk(path, error))
}

pub(super) fn remove_if_empty(folder: &Path) {
    // Fails while there is something in it, which is as it should be.
    let _ = fs::remove_dir(folder);
}
