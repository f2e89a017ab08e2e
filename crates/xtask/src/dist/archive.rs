//! Archives with fixed times, owners and order.

use std::io::Write;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub path: String,
    pub mode: u32,
    /// User and group.
    pub owner: u64,
    pub bytes: Vec<u8>,
}

impl Entry {
    pub fn file(path: &str, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { path: path.to_owned(), mode: 0o644, owner: 0, bytes: bytes.into() }
    }

    pub fn program(path: &str, bytes: Vec<u8>) -> Entry {
        Entry { path: path.to_owned(), mode: 0o755, owner: 0, bytes }
    }

    /// The same file in a folder.
    pub fn below(&self, folder: &str) -> Entry {
        Entry { path: format!("{folder}/{}", self.path), ..self.clone() }
    }

    /// The same file under another path.
    pub fn at(&self, path: String) -> Entry {
        Entry { path, ..self.clone() }
    }
}

/// Seconds since 1970 of every file: `SOURCE_DATE_EPOCH`, which [`check_time`] has found to be a number, or 0.
pub(crate) fn time() -> u64 {
    check_time(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref()).unwrap_or(0)
}

/// Parses the value of `SOURCE_DATE_EPOCH`; 0 without one.
pub(crate) fn check_time(given: Option<&str>) -> Result<u64, String> {
    let wrong = |given: &str| format!("SOURCE_DATE_EPOCH is `{given}`; it must be a number of seconds since 1970");
    given.map_or(Ok(0), |given| given.parse().map_err(|_| wrong(given)))
}

/// A tar archive in the order of paths, with an entry for each folder, which has the owner of its first file.
pub(crate) fn tar(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    let mut builder = Builder::new(Vec::new());
    let mut folders: Vec<&str> = Vec::new();
    for entry in sorted {
        for (at, _) in entry.path.match_indices('/') {
            let folder = &entry.path[..=at];
            if !folders.contains(&folder) {
                let of_folder = Entry { path: folder.to_owned(), mode: 0o755, owner: entry.owner, bytes: Vec::new() };
                append(&mut builder, EntryType::Directory, &of_folder)?;
                folders.push(folder);
            }
        }
        append(&mut builder, EntryType::Regular, entry)?;
    }
    builder.into_inner().map_err(|error| error.to_string())
}

fn append(builder: &mut Builder<Vec<u8>>, kind: EntryType, entry: &Entry) -> Result<(), String> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(entry.mode);
    header.set_uid(entry.owner);
    header.set_gid(entry.owner);
    if entry.owner == 0 {
        header.set_username("root").and_then(|()| header.set_groupname("root")).map_err(|error| error.to_string())?;
    }
    header.set_mtime(time());
    header.set_size(entry.bytes.len() as u64);
    let appended = builder.append_data(&mut header, &entry.path, entry.bytes.as_slice());
    appended.map_err(|error| format!("{}: {error}", entry.path))
}

pub(crate) fn tar_gz(entries: &[Entry]) -> Result<Vec<u8>, String> {
    gzip(&tar(entries)?)
}

pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}
