//! What the files of LibreOffice (OpenDocument) share.

use crate::archive::Archive;
use crate::xml::{self, Node, Tag};
use crate::{Cause, Kind, Limit};

const MANIFEST: &str = "META-INF/manifest.xml";
const CONTENT: &str = "content.xml";
const STYLES: &str = "styles.xml";
const META: &str = "meta.xml";

/// Opens the archive of a document.
///
/// # Errors
/// [`Cause::Encrypted`], and those of [`Archive::open`].
pub(crate) fn open(bytes: &[u8], kind: Kind) -> Result<Archive<'_>, Cause> {
    let mut archive = Archive::open(bytes, kind)?;
    let mut is_encrypted = false;
    let read = xml::each_tag(&archive.text_if_any(MANIFEST)?.unwrap_or_default(), kind, |tag| {
        is_encrypted = tag.name() == b"encryption-data";
        Ok(!is_encrypted)
    });
    read.map_err(|cause| cause.in_part(MANIFEST))?;
    if is_encrypted { Err(Cause::Encrypted) } else { Ok(archive) }
}

/// Calls `each` with the tags and texts of a document, as [`xml::walk`] does, and with its archive.
///
/// # Errors
/// Those of [`xml::walk`].
pub(crate) fn walk(
    archive: &mut Archive<'_>,
    mut each: impl FnMut(Node<'_>, &mut Archive<'_>) -> Result<bool, Cause>,
) -> Result<(), Cause> {
    let (content, kind) = (archive.text(CONTENT)?, archive.kind());
    xml::walk(&content, kind, |node| each(node, archive)).map_err(|cause| cause.in_part(CONTENT))
}

/// Calls `each` with the start tags of the styles that all parts of a document share, which it need not have.
///
/// # Errors
/// Those of [`xml::each_tag`].
pub(crate) fn each_style(
    archive: &mut Archive<'_>,
    mut each: impl FnMut(&Tag<'_>) -> Result<(), Limit>,
) -> Result<(), Cause> {
    let (styles, kind) = (archive.text_if_any(STYLES)?.unwrap_or_default(), archive.kind());
    xml::each_tag(&styles, kind, |tag| each(tag).map(|()| true)).map_err(|cause| cause.in_part(STYLES))
}

/// The title in the document's properties.
pub(crate) fn title(archive: &mut Archive<'_>) -> Result<Option<String>, Cause> {
    match archive.text_if_any(META)? {
        Some(meta) => xml::text_of(&meta, "title", archive.kind()).map_err(|cause| cause.in_part(META)),
        None => Ok(None),
    }
}
