//! Writing a bundle: the executable, files one after the other, the table of contents.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Bundle, Contents, Defaults, Entry, Error, MAGIC, Result, mark};

/// Files start at multiples of this: the largest page of a processor that memlocal runs on.
const ALIGNMENT: u64 = 64 << 10;

const BUFFER_BYTES: usize = 1 << 20;

/// Who may read and run a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    Owner,
    All,
}

/// A bundle that is being written.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    at: u64,
    contents: Contents,
}

impl Writer {
    /// Starts a bundle with a copy of the executable of this program, which may be a bundle itself.
    ///
    /// # Errors
    /// [`Error::NotAnExecutable`] if it is not a program that looks for a bundle; [`Error::Io`].
    pub fn create(path: &Path, licence: &str) -> Result<Writer> {
        let own = std::env::current_exe().map_err(|source| Error::Io { path: "this program".into(), source })?;
        let mut executable = fs::read(&own).map_err(|source| Error::Io { path: own.clone(), source })?;
        if let Some(bundle) = Bundle::of_this_program()? {
            executable.truncate(usize::try_from(bundle.contents().executable.bytes).unwrap_or(usize::MAX));
        }
        if !mark::set(&mut executable) {
            return Err(Error::NotAnExecutable { path: own });
        }
        let file = create(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let mut writer = Writer { path: path.to_owned(), file, at: 0, contents: Contents::default() };
        writer.contents.executable = writer.put("memlocal", &mut &executable[..], licence)?;
        Ok(writer)
    }

    /// Continues a finished bundle.
    ///
    /// # Errors
    /// As [`Bundle::open`]; [`Error::Io`].
    pub fn append(path: &Path) -> Result<Writer> {
        let bundle = Bundle::open(path)?;
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut file = File::options().write(true).open(path).map_err(io)?;
        file.set_len(bundle.end).and_then(|()| file.seek(SeekFrom::Start(bundle.end))).map_err(io)?;
        Ok(Writer { path: path.to_owned(), file, at: bundle.end, contents: bundle.contents })
    }

    /// Adds a file, which may be in a bundle.
    ///
    /// # Errors
    /// [`Error::Io`], of either file.
    pub fn add(&mut self, name: &str, from: &Path, licence: &str) -> Result<()> {
        let mut source = open(from).map_err(|source| Error::Io { path: from.to_owned(), source })?;
        let entry = self.put(name, &mut source, licence)?;
        self.contents.files.push(entry);
        Ok(())
    }

    /// Writes the table of contents; the bundle is on the disk then, and can be run.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self, defaults: Defaults, readers: Readers) -> Result<Bundle> {
        self.contents.defaults = defaults;
        let io = |source: io::Error| Error::Io { path: self.path.clone(), source };
        let table = serde_json::to_vec(&self.contents).map_err(|error| io(error.into()))?;
        let numbers = [self.at.to_le_bytes(), (table.len() as u64).to_le_bytes()].concat();
        let trailer = [&numbers[..], blake3::hash(&table).as_bytes(), MAGIC].concat();
        let written = self.file.write_all(&table).and_then(|()| self.file.write_all(&trailer));
        written.and_then(|()| permit(&self.file, readers)).and_then(|()| self.file.sync_all()).map_err(io)?;
        Bundle::open(&self.path)
    }

    fn put(&mut self, name: &str, from: &mut impl Read, licence: &str) -> Result<Entry> {
        let io = |source| Error::Io { path: self.path.clone(), source };
        let offset = self.at.next_multiple_of(ALIGNMENT);
        let zeros = io::repeat(0).take(offset - self.at);
        io::copy(&mut { zeros }, &mut self.file).map_err(io)?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let mut bytes = 0;
        let unreadable = |source| Error::Io { path: name.into(), source };
        while from.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut buffer).map_err(unreadable)? > 0 {
            hasher.update_rayon(&buffer);
            self.file.write_all(&buffer).map_err(io)?;
            bytes += buffer.len() as u64;
            buffer.clear();
        }
        self.at = offset + bytes;
        let blake3 = hasher.finalize().to_hex().to_string();
        Ok(Entry { name: name.to_owned(), offset, bytes, blake3, licence: licence.to_owned() })
    }
}

fn open(path: &Path) -> io::Result<impl Read> {
    let Some((bundle, name)) = Bundle::holding(path) else { return Ok(File::open(path)?.take(u64::MAX)) };
    let entry = bundle.find(&name).ok_or(io::ErrorKind::NotFound)?;
    let mut file = File::open(bundle.path())?;
    file.seek(SeekFrom::Start(entry.offset))?;
    Ok(file.take(entry.bytes))
}

/// Creates a file for its owner only: a bundle may hold private documents.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn permit(file: &File, readers: Readers) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = if readers == Readers::All { 0o755 } else { 0o700 };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn permit(_file: &File, _readers: Readers) -> io::Result<()> {
    Ok(())
}
