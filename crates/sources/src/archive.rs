//! The ZIP archives that documents are, read with limits so that a small file cannot unpack to a huge one.
//!
//! Only the parts asked for are unpacked, and archives inside archives are never opened.

use std::io::{Cursor, Read};

use memchr::memmem;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::limit::{ARCHIVE_ENTRIES, UNPACKED_BYTES};
use crate::xml::ADVICE;
use crate::{Cause, Kind, Limit, encoding};

/// The first bytes of every archive.
const START: &[u8] = b"PK";
/// The signature of an entry in the directory of an archive.
const ENTRY: &[u8] = b"PK\x01\x02";

/// An open archive, and how many bytes may still be unpacked from it.
pub(crate) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    kind: Kind,
    bytes_left: u64,
}

impl<'a> Archive<'a> {
    /// Opens an archive that is in memory.
    ///
    /// # Errors
    /// [`Cause::Damaged`] if it is no archive, [`Limit::ArchiveEntries`] if it has too many entries.
    pub fn open(bytes: &'a [u8], kind: Kind) -> Result<Self, Cause> {
        // Counted before opening, which reads the whole directory into memory.
        if memmem::find_iter(bytes, ENTRY).nth(ARCHIVE_ENTRIES).is_some() {
            return Err(Limit::ArchiveEntries(ARCHIVE_ENTRIES).into());
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|_| not_an_archive(bytes, kind))?;
        Ok(Archive { zip, kind, bytes_left: UNPACKED_BYTES })
    }

    /// The type of file that the archive is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The text of a required part.
    pub fn text(&mut self, name: &str) -> Result<String, Cause> {
        self.text_if_any(name)?.ok_or_else(|| damaged(self.kind, name, "it is missing"))
    }

    /// The text of a part, without a byte order mark; `None` if the archive has no such part.
    pub fn text_if_any(&mut self, name: &str) -> Result<Option<String>, Cause> {
        let kind = self.kind;
        let part = match self.zip.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::InvalidPassword | ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(Cause::Encrypted);
            }
            Err(ZipError::CompressionMethodNotSupported(_) | ZipError::UnsupportedArchive(_)) => {
                return Err(damaged(kind, name, "it is compressed by a method that is not supported"));
            }
            Err(_) => return Err(damaged(kind, name, "it cannot be unpacked")),
        };
        let mut bytes = Vec::new();
        if part.take(self.bytes_left + 1).read_to_end(&mut bytes).is_err() {
            return Err(damaged(kind, name, "it cannot be unpacked"));
        }
        self.bytes_left =
            self.bytes_left.checked_sub(bytes.len() as u64).ok_or(Limit::UnpackedBytes(UNPACKED_BYTES))?;
        let text =
            encoding::decode_utf8(bytes).map_err(|cause| Cause::damaged(kind, cause.to_string()).in_part(name))?;
        Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }
}

fn damaged(kind: Kind, part: &str, why: &str) -> Cause {
    Cause::damaged(kind, format!("{why}; {ADVICE}")).in_part(part)
}

/// What is wrong with a file that cannot be opened as an archive.
fn not_an_archive(bytes: &[u8], kind: Kind) -> Cause {
    let detail = if bytes.starts_with(START) {
        "the list of its parts is missing or damaged; the file may have been cut short; get another copy".to_owned()
    } else {
        format!(
            "its content is of another format than {kind}; open it in the program that made it and save it as {kind}"
        )
    };
    Cause::damaged(kind, detail)
}

/// The archive name behind a relative URL in the file `base`.
pub(crate) fn resolve(base: &str, url: &str) -> String {
    let path = percent_decoded(url.split(['#', '?']).next().unwrap_or_default());
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names: Vec<&str> = Vec::new();
    for name in folder.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            _ => names.push(name),
        }
    }
    names.join("/")
}

fn percent_decoded(url: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = url.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_resolve_inside_the_archive() {
        fn check(base: &str, url: &str, expect: &str) {
            assert_eq!(resolve(base, url), expect, "{url} in {base}");
        }
        check("OPS/package.opf", "one.xhtml", "OPS/one.xhtml");
        check("package.opf", "text/one.xhtml#top", "text/one.xhtml");
        check("OPS/package.opf", "../text/./one.xhtml", "text/one.xhtml");
        check("OPS/package.opf", "a%20b%C3%A9.xhtml", "OPS/a bé.xhtml");
        check("OPS/package.opf", "100%.xhtml", "OPS/100%.xhtml");
        check("", "../../../etc/passwd", "etc/passwd");
    }
}
