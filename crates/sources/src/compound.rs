//! Compound files (MS-CFB), the containers of Outlook's messages: storages, which are like folders, and streams, which
//! are like files in them. Read under limits, so that a small file takes little memory and time.

use std::fmt::Display;
use std::io::{Cursor, Read};

use cfb::{CompoundFile, Entry};

use crate::html::Deadline;
use crate::limit::COMPOUND_ENTRIES;
use crate::{Cause, Kind, Limit};

/// The first bytes of every compound file.
pub(crate) const SIGNATURE: [u8; 8] = [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

/// An open compound file. Paths in it begin with a slash; that of the root is empty.
pub(crate) struct Compound<'a> {
    file: CompoundFile<Cursor<&'a [u8]>>,
    kind: Kind,
    /// How many bytes of streams may still be read.
    bytes_left: u64,
    deadline: Deadline,
}

impl<'a> Compound<'a> {
    /// Opens a compound file that is in memory.
    ///
    /// # Errors
    /// [`Cause::Damaged`]; [`Limit::ArchiveEntries`] if it has too many storages and streams.
    pub fn open(bytes: &'a [u8], kind: Kind, deadline: Deadline) -> Result<Self, Cause> {
        check_tables(bytes, kind)?;
        let file = CompoundFile::open(Cursor::new(bytes)).map_err(|error| damaged(kind, "its container", error))?;
        Ok(Compound { file, kind, bytes_left: bytes.len() as u64, deadline })
    }

    pub fn has_stream(&self, path: &str) -> bool {
        self.file.is_stream(path)
    }

    /// The paths of the storages in a storage whose names start with `prefix`, in the order of their names.
    ///
    /// # Errors
    /// [`Cause::Damaged`] if there is no storage at `path`.
    pub fn storages(&self, path: &str, prefix: &str) -> Result<Vec<String>, Cause> {
        let entries = self.file.read_storage(path).map_err(|error| damaged(self.kind, path, error))?;
        let is_wanted = |entry: &Entry| entry.is_storage() && entry.name().starts_with(prefix);
        Ok(entries.filter(is_wanted).map(|entry| format!("{path}/{}", entry.name())).collect())
    }

    /// The bytes of a stream; `None` if there is none at this path. Each stream is read once.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`Limit::Time`].
    pub fn stream(&mut self, path: &str) -> Result<Option<Vec<u8>>, Cause> {
        self.deadline.check()?;
        if !self.has_stream(path) {
            return Ok(None);
        }
        let (kind, mut bytes) = (self.kind, Vec::new());
        let damaged = |error| damaged(kind, path, error);
        let mut stream = self.file.open_stream(path).map_err(damaged)?;
        // The streams of a valid file have no bytes in common.
        let left = self.bytes_left.checked_sub(stream.len());
        self.bytes_left = left.ok_or_else(|| Cause::damaged(kind, "its streams are longer than the file"))?;
        stream.read_to_end(&mut bytes).map_err(damaged)?;
        Ok(Some(bytes))
    }
}

fn damaged(kind: Kind, part: &str, error: impl Display) -> Cause {
    Cause::damaged(kind, format!("{part} cannot be read: {error}; the file may have been cut short"))
}

/// The largest number of a sector; larger numbers end a chain.
const LAST_SECTOR: u32 = 0xFFFF_FFFA;

/// Refuses a file that would take much memory to open: the crate reads every sector of the allocation table (FAT) that
/// a file lists, also one that is listed many times, and then the whole directory.
fn check_tables(bytes: &[u8], kind: Kind) -> Result<(), Cause> {
    const IN_HEADER: usize = 109;
    const ENTRY_BYTES: usize = 128;
    let sector_bytes = match bytes.get(26) {
        Some(3) => 512,
        Some(4) => 4096,
        // The crate refuses other versions.
        _ => return Ok(()),
    };
    let (sectors, numbers) = (bytes.len() / sector_bytes, sector_bytes / 4);
    let number_in = |sector: u32, i: usize| number(bytes, (sector as usize + 1) * sector_bytes + 4 * i);
    let mut fat: Vec<u32> = (0..IN_HEADER).filter_map(|i| number(bytes, 76 + 4 * i)).collect();
    let mut next = number(bytes, 68);
    let mut lists = 0;
    while let Some(list) = next.filter(|list| *list <= LAST_SECTOR) {
        lists += 1;
        if lists > sectors / (numbers * numbers) + 2 {
            return Err(Cause::damaged(kind, "its allocation table is longer than the file"));
        }
        fat.extend((0..numbers - 1).map_while(|i| number_in(list, i)));
        next = number_in(list, numbers - 1);
    }
    let after = |sector: u32| number_in(*fat.get(sector as usize / numbers)?, sector as usize % numbers);
    let mut next = number(bytes, 48);
    let mut length = 0;
    // The crate refuses a chain that does not end.
    while let Some(sector) = next.filter(|sector| *sector <= LAST_SECTOR && length <= sectors) {
        length += 1;
        next = after(sector);
    }
    if length <= sectors && length * (sector_bytes / ENTRY_BYTES) > COMPOUND_ENTRIES {
        return Err(Limit::ArchiveEntries(COMPOUND_ENTRIES).into());
    }
    Ok(())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file() -> Vec<u8> {
        let mut file = CompoundFile::create(Cursor::new(Vec::new())).expect("it is in memory");
        for path in ["/b", "/a1", "/a2"] {
            file.create_storage(path).expect("it is in memory");
        }
        for path in ["/s", "/a3"] {
            file.create_stream(path).and_then(|mut stream| stream.write_all(b"words")).expect("it is in memory");
        }
        file.flush().expect("it is in memory");
        file.into_inner().into_inner()
    }

    fn open(bytes: &[u8]) -> Result<Compound<'_>, Cause> {
        Compound::open(bytes, Kind::Email, Deadline::start())
    }

    fn put(bytes: &mut [u8], at: usize, number: u32) {
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    #[test]
    fn storages_are_listed_and_streams_are_read() {
        let bytes = file();
        let mut file = open(&bytes).expect("it is valid");
        assert_eq!(file.storages("", "a").expect("it is valid"), ["/a1", "/a2"]);
        assert_eq!(file.stream("/s").expect("it is valid").as_deref(), Some(&b"words"[..]));
        assert_eq!(file.stream("/b").expect("it is valid"), None);
        assert_eq!(file.stream("/none").expect("it is valid"), None);
    }

    #[test]
    fn a_long_allocation_table_is_refused_before_it_is_read() {
        let mut bytes = file();
        let first = bytes.len() / 4096 - 1;
        bytes.resize(bytes.len() + 3 * 4096, 0);
        put(&mut bytes, 68, first as u32);
        for i in 0..3 {
            // Each list names sector 0 many times, and the next list.
            let next = if i < 2 { (first + i + 1) as u32 } else { 0xFFFF_FFFE };
            put(&mut bytes, (first + i + 2) * 4096 - 4, next);
        }
        let cause = open(&bytes).err().expect("it is refused");
        assert_eq!(cause.to_string(), "damaged e-mail: its allocation table is longer than the file");
    }

    #[test]
    fn streams_that_share_bytes_and_late_ones_are_refused() {
        let bytes = file();
        let mut file = open(&bytes).expect("it is valid");
        file.bytes_left = 9;
        assert!(file.stream("/s").is_ok());
        let cause = file.stream("/a3").expect_err("4 bytes are left");
        assert_eq!(cause.to_string(), "damaged e-mail: its streams are longer than the file");
        file.deadline = Deadline::passed();
        assert!(matches!(file.stream("/s"), Err(Cause::LimitExceeded(Limit::Time(_)))));
    }
}
