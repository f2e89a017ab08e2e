//! What the files of LibreOffice (OpenDocument) share.

use crate::archive::Archive;
use crate::{Cause, Kind, xml};

/// Opens the archive of a document.
///
/// # Errors
/// [`Cause::Encrypted`], and those of [`Archive::open`].
pub(crate) fn open(bytes: &[u8], kind: Kind) -> Result<Archive<'_>, Cause> {
    let mut archive = Archive::open(bytes, kind)?;
    let mut is_encrypted = false;
    xml::each_tag(&archive.text_if_any("META-INF/manifest.xml")?.unwrap_or_default(), kind, |tag| {
        is_encrypted = tag.name() == b"encryption-data";
        Ok(!is_encrypted)
    })?;
    if is_encrypted { Err(Cause::Encrypted) } else { Ok(archive) }
}

/// The title in the document's properties.
pub(crate) fn title(archive: &mut Archive<'_>) -> Result<Option<String>, Cause> {
    match archive.text_if_any("meta.xml")? {
        Some(meta) => xml::text_of(&meta, "title", archive.kind()),
        None => Ok(None),
    }
}
