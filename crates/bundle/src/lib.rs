//! Bundles: an executable of memlocal with files behind it, each at a page boundary, so that it is mapped from there.
//!
//! ```text
//! executable   zeros   file   zeros   file ...   table of contents (JSON)
//! trailer: offset u64   length u64   BLAKE3 of the table [32]   magic [16]
//! ```
//!
//! The table has the digest of everything before it. A path that continues below the path of a bundle names a file in it:
//! `/usr/bin/office/models/a/b.gguf`.
//!
//! Not here: what the files are (`launch`), mapping them (`models`).

mod error;
mod mark;
mod writer;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

pub use error::{Error, Result};
pub use writer::{Readers, Writer};

const MAGIC: &[u8; 16] = b"memlocal-bundle1";

/// Bytes of the trailer.
const TRAILER: usize = 64;

/// Values of flags, by the flags' names.
pub type Defaults = Vec<(String, Vec<String>)>;

/// An opened bundle, whose table of contents is sound.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    contents: Contents,
    /// Where the table of contents starts.
    end: u64,
    /// Whether each file has been found to be what was bundled.
    sound: Vec<OnceLock<bool>>,
    /// The files that stay in memory, by where they start.
    resident: Mutex<HashMap<u64, &'static [u8]>>,
}

/// The table of contents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The executable at the start.
    pub executable: Entry,
    /// Where the user gives no others. `./` at the start of a path is the bundle.
    pub defaults: Defaults,
    pub files: Vec<Entry>,
}

/// A file of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// A path with `/`.
    pub name: String,
    /// In the bundle, from its start.
    pub offset: u64,
    pub bytes: u64,
    /// In hexadecimal digits.
    pub blake3: String,
    /// The licence of the content as an SPDX identifier; empty where none is stated.
    pub licence: String,
}

impl Bundle {
    /// Opens a bundle and checks its table of contents.
    ///
    /// # Errors
    /// [`Error::NotABundle`] for a file without a trailer, [`Error::Altered`], [`Error::Io`].
    pub fn open(path: &Path) -> Result<Bundle> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let not_one = || Error::NotABundle { path: path.to_owned() };
        let at = len.checked_sub(TRAILER as u64).ok_or_else(not_one)?;
        let trailer = read_at(&mut file, at, TRAILER).map_err(io)?;
        let (numbers, magic) = trailer.split_at(TRAILER - MAGIC.len());
        if magic != MAGIC {
            return Err(not_one());
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| numbers[at + i]));
        let (end, table_len) = (number(0), number(8));
        let altered = |what: &str| Error::Altered { path: path.to_owned(), what: what.to_owned() };
        if end.checked_add(table_len) != Some(at) {
            return Err(altered("bytes were added or removed"));
        }
        let table_len = usize::try_from(table_len).map_err(|_| altered("its table of contents"))?;
        let table = read_at(&mut file, end, table_len).map_err(io)?;
        if blake3::hash(&table).as_bytes()[..] != numbers[16..] {
            return Err(altered("its table of contents"));
        }
        let contents: Contents = serde_json::from_slice(&table).map_err(|_| altered("its table of contents"))?;
        let within = |entry: &Entry| entry.offset.checked_add(entry.bytes).is_some_and(|after| after <= end);
        if !contents.files.iter().chain([&contents.executable]).all(within) {
            return Err(altered("its table of contents"));
        }
        let sound = contents.files.iter().map(|_| OnceLock::new()).collect();
        Ok(Bundle { path: path.to_owned(), contents, end, sound, resident: Mutex::default() })
    }

    /// Opens the bundle of this program; `None` if the program is not one.
    ///
    /// # Errors
    /// As [`Bundle::open`]: a program that was a bundle and is cut off says so.
    pub fn of_this_program() -> Result<Option<Bundle>> {
        if !mark::is_set() {
            return Ok(None);
        }
        let io = |source| Error::Io { path: "this program".into(), source };
        Bundle::open(&std::env::current_exe().map_err(io)?).map(Some)
    }

    /// Finds the bundle and the name of the file that a path below a bundle means; `None` for every other path. Bundles
    /// stay open.
    pub fn holding(path: &Path) -> Option<(Arc<Bundle>, String)> {
        static OPENED: Mutex<Vec<Arc<Bundle>>> = Mutex::new(Vec::new());
        let existing = path.ancestors().skip(1).find(|ancestor| ancestor.exists())?;
        if !existing.is_file() {
            return None;
        }
        let name = path.strip_prefix(existing).ok()?.components().map(|part| part.as_os_str().to_str());
        let name = name.collect::<Option<Vec<&str>>>()?.join("/");
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.iter().find(|known| known.path == existing) {
            return Some((Arc::clone(known), name));
        }
        let bundle = Arc::new(Bundle::open(existing).ok()?);
        opened.push(Arc::clone(&bundle));
        Some((bundle, name))
    }

    /// Where the bundle is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its table of contents.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The file of this name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.contents.files.iter().find(|entry| entry.name == name)
    }

    /// The files whose names start with a folder, which ends in `/`.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.contents.files.iter().filter(move |entry| entry.name.starts_with(folder))
    }

    /// Compares the bytes of a file with its digest; only the first time, because gigabytes take a second each.
    ///
    /// # Errors
    /// [`Error::Altered`].
    pub fn check(&self, entry: &Entry, bytes: &[u8]) -> Result<()> {
        let digest_fits = || blake3::Hasher::new().update_rayon(bytes).finalize().to_hex().as_str() == entry.blake3;
        let index = self.contents.files.iter().position(|known| known == entry);
        let sound = index.map_or_else(digest_fits, |index| *self.sound[index].get_or_init(digest_fits));
        if sound { Ok(()) } else { Err(Error::Altered { path: self.path.clone(), what: entry.name.clone() }) }
    }

    /// Reads a file into memory and checks it.
    ///
    /// # Errors
    /// [`Error::Altered`], [`Error::Io`].
    pub fn read(&self, entry: &Entry) -> Result<Vec<u8>> {
        let io = |source| Error::Io { path: self.path.clone(), source };
        let len = usize::try_from(entry.bytes).map_err(|_| io(std::io::ErrorKind::OutOfMemory.into()))?;
        let bytes = File::open(&self.path).and_then(|mut file| read_at(&mut file, entry.offset, len)).map_err(io)?;
        self.check(entry, &bytes)?;
        Ok(bytes)
    }

    /// Reads a file into memory and checks it, the first time only: it stays there until the process ends.
    ///
    /// # Errors
    /// As [`Bundle::read`].
    pub fn resident(&self, entry: &Entry) -> Result<&'static [u8]> {
        // Held while the file is read, so that concurrent callers do not read it twice.
        let mut resident = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = resident.get(&entry.offset) {
            return Ok(bytes);
        }
        let bytes: &'static [u8] = Box::leak(self.read(entry)?.into_boxed_slice());
        resident.insert(entry.offset, bytes);
        Ok(bytes)
    }

    /// Whether a file, or the executable, is what was bundled. Reads it in pieces.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_sound(&self, entry: &Entry) -> Result<bool> {
        let io = |source| Error::Io { path: self.path.clone(), source };
        let mut file = File::open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(entry.offset)).map_err(io)?;
        let mut hasher = blake3::Hasher::new();
        std::io::copy(&mut file.take(entry.bytes), &mut hasher).map_err(io)?;
        Ok(hasher.finalize().to_hex().as_str() == entry.blake3)
    }
}

fn read_at(file: &mut File, at: u64, len: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
