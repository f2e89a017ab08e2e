//! The receipt of an installed model: its files and their origin.
//! It is written last and in one piece, so a folder without a receipt is a folder that is not finished.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::digest::check_size;
use super::slot::Slot;
use super::{FetchError, Fetched, FetchedFile, SourceUsed};
use crate::manifest::{Choice, FileSpec, Format, Role, Sha256Hex};

pub(super) const RECEIPT_NAME: &str = "receipt.toml";

/// What was installed and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The name by which a model of the hub was fetched, `hf:...`; none for known models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The licence as the hub states it, for models without a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// Where the bytes came from.
    pub source: SourceUsed,
    /// Every file, shards in order.
    pub files: Vec<ReceiptFile>,
}

/// One installed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptFile {
    /// What the file is for.
    pub role: Role,
    /// The file's name in the variant's folder.
    pub name: String,
    /// The file's length.
    pub bytes: u64,
    /// The digest of the file's content when it was installed.
    pub sha256: Sha256Hex,
}

impl Receipt {
    /// Of a known model.
    pub(super) fn new(source: SourceUsed, files: Vec<ReceiptFile>) -> Receipt {
        Receipt { name: None, licence: None, source, files }
    }

    /// Reads the receipt of an installed variant.
    ///
    /// # Errors
    ///
    /// [`FetchError::NotInstalled`] if there is none, [`FetchError::BadReceipt`] if it makes no sense.
    pub(super) fn read(folder: &Path) -> Result<Self, FetchError> {
        let path = folder.join(RECEIPT_NAME);
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| FetchError::BadReceipt { path, source: error.into() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FetchError::NotInstalled),
            Err(error) => Err(FetchError::from_disk(&path, error)),
        }
    }

    /// Takes the receipt away, so that the folder counts as unfinished.
    pub(super) fn clear(folder: &Path) -> Result<(), FetchError> {
        let path = folder.join(RECEIPT_NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FetchError::from_disk(&path, error)),
            _ => Ok(()),
        }
    }

    /// Whether this is the receipt of what the manifest states today.
    fn fits(&self, wanted: &[FileSpec]) -> bool {
        let same = |file: &ReceiptFile, spec: &FileSpec| {
            file.role == spec.role
                && file.name == spec.name
                && spec.bytes.is_none_or(|bytes| bytes == file.bytes)
                && spec.sha256.as_ref().is_none_or(|sha256| *sha256 == file.sha256)
        };
        self.files.len() == wanted.len() && self.files.iter().zip(wanted).all(|(file, spec)| same(file, spec))
    }
}

/// Opens an installed model: a receipt that fits the manifest, and every file with its length.
pub(super) fn open_installed(choice: Choice<'_>, models_dir: &Path) -> Result<Fetched, FetchError> {
    let folder = Slot::of(choice).folder(models_dir);
    let receipt = Receipt::read(&folder)?;
    if !receipt.fits(&choice.variant.files) {
        return Err(FetchError::Outdated { folder });
    }
    open(&folder, &receipt, choice.variant.format)
}

/// Opens what a receipt lists: every file with its length.
pub(super) fn open(folder: &Path, receipt: &Receipt, format: Format) -> Result<Fetched, FetchError> {
    let mut files = Vec::with_capacity(receipt.files.len());
    for file in &receipt.files {
        let path = folder.join(&file.name);
        let Ok(metadata) = fs::metadata(&path) else { return Err(FetchError::MissingFile { path }) };
        check_size(&path, Some(file.bytes), metadata.len())?;
        files.push(FetchedFile { role: file.role, path });
    }
    Ok(Fetched { files, format, source: SourceUsed::Installed { folder: folder.to_owned() } })
}
