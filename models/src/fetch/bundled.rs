//! Models in a bundle: the files of a known one are `models/<name>/<variant>/<file>`.

use std::path::{Path, PathBuf};

use bundle::Bundle;

use super::digest::check_size;
use super::{FetchError, Fetched, FetchedFile, SourceUsed};
use crate::manifest::Choice;

/// The folder of a known model in a bundle.
pub fn bundled_folder(choice: Choice<'_>) -> String {
    format!("models/{}/{}", choice.manifest.name, choice.variant.name)
}

/// Opens a known model in a bundle.
pub(super) fn open(choice: Choice<'_>, path: &Path) -> Result<Fetched, FetchError> {
    let folder = path.join(bundled_folder(choice));
    let mut files = Vec::with_capacity(choice.variant.files.len());
    for spec in &choice.variant.files {
        let path: PathBuf = folder.join(&spec.name);
        let held = Bundle::holding(&path);
        let entry = held.as_ref().and_then(|(bundle, name)| bundle.find(name));
        let Some(entry) = entry else { return Err(FetchError::MissingFile { path }) };
        check_size(&path, spec.bytes, entry.bytes)?;
        files.push(FetchedFile { role: spec.role, path });
    }
    Ok(Fetched { files, format: choice.variant.format, source: SourceUsed::Bundle { path: path.to_owned() } })
}
