//! The folder of a model while it is being filled, with every other process kept out.
//!
//! ```text
//! <models>/.locks/<name>_<variant>.lock     held for as long as the folder is being filled or emptied
//! <models>/<name>/<variant>/.incoming/      what is still on its way; kept when a fetch is broken off
//!                          /<file>          moved here once its content has been checked
//!                          /receipt.toml    last
//! ```

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::digest::{CopyError, Digested, copy_digesting};
use super::receipt::{self, RECEIPT_NAME};
use super::slot::{Slot, create_folder, lock, remove_if_empty};
use super::{FetchError, Fetched, Progress, Receipt, ReceiptFile, Report};
use crate::manifest::{FileSpec, Format};

/// A folder that is being filled.
pub(super) struct Installation {
    slot: Slot,
    models_dir: PathBuf,
    folder: PathBuf,
    _lock: File,
}

impl Installation {
    /// Waits for its turn.
    pub fn begin(slot: Slot, models_dir: &Path) -> Result<Self, FetchError> {
        let lock = lock(&slot, models_dir)?;
        Ok(Self { folder: slot.folder(models_dir), slot, models_dir: models_dir.to_owned(), _lock: lock })
    }

    /// Declares the folder unfinished and makes room for what comes.
    pub fn prepare(&self) -> Result<(), FetchError> {
        Receipt::clear(&self.folder)?;
        create_folder(&self.incoming())
    }

    /// Where a source may leave what is on its way; it is still there when a fetch is tried again.
    pub fn incoming(&self) -> PathBuf {
        self.folder.join(".incoming")
    }

    /// Copies a file in and gives it its name if it holds what the manifest states.
    ///
    /// # Errors
    ///
    /// What `unreadable` makes of a failure to read; as [`place`](Self::place); what the disk says.
    pub fn copy_in(
        &self,
        spec: &FileSpec,
        from: &mut impl Read,
        total_bytes: u64,
        unreadable: impl FnOnce(io::Error) -> FetchError,
        report: &mut Report<'_>,
    ) -> Result<ReceiptFile, FetchError> {
        let incoming = self.incoming().join(&spec.name);
        let mut target = File::create(&incoming).map_err(|error| FetchError::from_disk(&incoming, error))?;
        let on_bytes = |done_bytes| report(Progress { file: &spec.name, done_bytes, total_bytes: Some(total_bytes) });
        let copied = copy_digesting(from, &mut target, on_bytes);
        if copied.is_err() {
            // On a full disk its space is needed; it would be written anew in any case.
            let _ = fs::remove_file(&incoming);
        }
        let found = copied.map_err(|error| match error {
            CopyError::Read(error) => unreadable(error),
            CopyError::Write(error) => FetchError::from_disk(&incoming, error),
        })?;
        self.place(spec, &incoming, found)
    }

    /// Gives an incoming file its name if it holds what the manifest states, and removes it if not.
    pub fn place(&self, spec: &FileSpec, incoming: &Path, found: Digested) -> Result<ReceiptFile, FetchError> {
        if let Err(wrong) = found.check(incoming, spec) {
            fs::remove_file(incoming).map_err(|error| FetchError::from_disk(incoming, error))?;
            return Err(wrong);
        }
        let target = self.folder.join(&spec.name);
        create_folder(target.parent().unwrap_or(&self.folder))?;
        move_durably(incoming, &target)?;
        Ok(ReceiptFile { role: spec.role, name: spec.name.clone(), bytes: found.bytes, sha256: found.sha256 })
    }

    /// Removes the folders that are still empty. Those with files for the next try stay.
    pub fn abandon(self) {
        remove_if_empty(&self.incoming());
        self.slot.remove_if_empty(&self.models_dir);
    }

    /// Writes the receipt, which makes the model installed.
    pub fn finish(self, receipt: &Receipt, format: Format) -> Result<Fetched, FetchError> {
        let text = toml::to_string(receipt).expect("a receipt holds only strings and numbers");
        let incoming = self.incoming().join(RECEIPT_NAME);
        fs::write(&incoming, text).map_err(|error| FetchError::from_disk(&incoming, error))?;
        move_durably(&incoming, &self.folder.join(RECEIPT_NAME))?;
        // What is left there is only a waste of space; the model is installed.
        let _ = fs::remove_dir_all(self.incoming());
        Ok(Fetched { source: receipt.source.clone(), ..receipt::open(&self.folder, receipt, format)? })
    }
}

/// Renames a file once its content has reached the disk.
fn move_durably(from: &Path, to: &Path) -> Result<(), FetchError> {
    let synced = File::options().write(true).open(from).and_then(|file| file.sync_all());
    synced.and_then(|()| fs::rename(from, to)).map_err(|error| FetchError::from_disk(to, error))
}
