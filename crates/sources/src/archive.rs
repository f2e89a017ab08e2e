//! The ZIP archives inside DOCX and EPUB, read with limits so that a small file cannot unpack to a huge one.
//!
//! Only the parts asked for are unpacked, each at most once or twice, and archives inside archives are never opened.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::{Cause, Kind, plain};

/// More parts than any real document has.
const MAX_ENTRIES: u64 = 20_000;
/// What all the parts read of one archive may unpack to, together.
const MAX_UNPACKED_BYTES: u64 = 256 << 20;

/// An open archive and what may still be unpacked from it.
pub(crate) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    kind: Kind,
    bytes_left: u64,
}

impl<'a> Archive<'a> {
    /// Opens an archive that is in memory.
    ///
    /// # Errors
    /// [`Cause::Damaged`] when it is none, [`Cause::TooLarge`] when it lists too many entries.
    pub fn open(bytes: &'a [u8], kind: Kind) -> Result<Self, Cause> {
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| Cause::damaged(kind, error.to_string()))?;
        if zip.len() as u64 > MAX_ENTRIES {
            return Err(Cause::TooLarge { limit: MAX_ENTRIES, what: "archive entries" });
        }
        Ok(Archive { zip, kind, bytes_left: MAX_UNPACKED_BYTES })
    }

    /// The text of a part that must be there.
    pub fn text(&mut self, name: &str) -> Result<String, Cause> {
        self.text_if_any(name)?.ok_or_else(|| Cause::damaged(self.kind, format!("{name} is not in the archive")))
    }

    /// The text of a part, without a byte order mark; `None` if the archive has no such part.
    pub fn text_if_any(&mut self, name: &str) -> Result<Option<String>, Cause> {
        let part = match self.zip.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::InvalidPassword | ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(Cause::Encrypted);
            }
            Err(error) => return Err(Cause::damaged(self.kind, format!("{name}: {error}"))),
        };
        let mut bytes = Vec::new();
        let read = part.take(self.bytes_left + 1).read_to_end(&mut bytes);
        read.map_err(|error| Cause::damaged(self.kind, format!("{name}: {error}")))?;
        self.bytes_left = self
            .bytes_left
            .checked_sub(bytes.len() as u64)
            .ok_or(Cause::TooLarge { limit: MAX_UNPACKED_BYTES, what: "bytes unpacked" })?;
        let text = plain::decode(bytes).map_err(|cause| Cause::damaged(self.kind, format!("{name}: {cause}")))?;
        Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }
}
