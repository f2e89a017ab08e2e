//! The receipt of an installed model: its files and their origin.
//! It is written last and in one piece, so a folder without a receipt is a folder that is not finished.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::digest::check_size;
use super::installation::folder_of;
use super::{FetchError, Fetched, FetchedFile, SourceUsed};
use crate::manifest::{Choice, FileSpec, Format, Role, Sha256Hex};

pub(super) const RECEIPT_NAME: &str = "receipt.toml";

/// What was installed and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The name on the hub of a model without a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
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
    pub(super) fn new(choice: Choice<'_>, source: SourceUsed, files: Vec<ReceiptFile>) -> Receipt {
        let is_named = choice.variant.files.is_empty();
        Receipt { model: is_named.then(|| choice.to_string()), source, files }
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

    /// Whether this is the receipt of what the manifest wants today; a manifest without files takes those of the receipt.
    fn fits(&self, wanted: &[FileSpec]) -> bool {
        if wanted.is_empty() {
            return self.files.iter().any(|file| file.role == Role::Weights);
        }
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
    let folder = folder_of(choice, models_dir);
    let receipt = Receipt::read(&folder)?;
    if !receipt.fits(&choice.variant.files) {
        return Err(FetchError::Outdated { folder });
    }
    let mut files = Vec::with_capacity(receipt.files.len());
    for file in &receipt.files {
        let path = folder.join(&file.name);
        let Ok(metadata) = fs::metadata(&path) else { return Err(FetchError::MissingFile { path }) };
        check_size(&path, Some(file.bytes), metadata.len())?;
        files.push(FetchedFile { role: file.role, path });
    }
    Ok(Fetched { format: format_of(choice, &files), files, source: SourceUsed::Installed { folder } })
}

/// The format of a variant's files; without a manifest, that of the first weight file.
pub(super) fn format_of(choice: Choice<'_>, files: &[FetchedFile]) -> Format {
    let first = files.iter().find(|file| file.role == Role::Weights).filter(|_| choice.variant.files.is_empty());
    first.map_or(choice.variant.format, |file| Format::of(&file.path.to_string_lossy()))
}
