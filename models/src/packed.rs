//! Packed weights, kept in a file beside the checkpoint and mapped at the next start instead of packed again.
//!
//! ```text
//! magic [8]   length of the head u32   head (JSON)   zeros up to a multiple of 64
//! the packed matrices, each at a multiple of 64
//! BLAKE3 of everything before [32]
//! ```
//!
//! The head names what the matrices were packed from ([`Identity`]); a file of another origin, of another layout, or with
//! one changed byte is ignored and written again. It is a copy: deleting it costs one slower start. The
//! identity has no numerics: one layout serves all of them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kernels::matmul::{Format, LAYOUT, Matrix};
use serde::{Deserialize, Serialize};

use crate::error::{ModelError, Result};
use crate::files;
use crate::mapped::MappedFile;

const MAGIC: &[u8; 8] = b"mlpacked";

/// Matrices and the digest start at multiples of this: a cache line, the widest load of a kernel.
const ALIGNMENT: usize = 64;

const DIGEST_BYTES: usize = 32;

/// A file that has been written to so long ago is not being written any more.
const ABANDONED: Duration = Duration::from_hours(1);

/// What packed weights were made from: files, their tensors, the precision asked for, and the layout of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(pub [u8; 32]);

/// Packed weights of one checkpoint, beside it on the disk or to be put there.
#[derive(Debug)]
pub(crate) enum Packed {
    /// Neither used nor kept.
    Off,
    /// Mapped from a sound file.
    Kept { bytes: Bytes, matrices: Vec<Entry> },
    /// None were kept: those that are packed now are noted, to be written.
    Missing { path: PathBuf, identity: Identity, matrices: Mutex<Vec<(String, Matrix)>> },
}

/// One matrix of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    name: String,
    format: String,
    rows: usize,
    cols: usize,
    start: usize,
    len: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    layout: u32,
    identity: String,
    matrices: Vec<Entry>,
}

impl Packed {
    /// Looks for packed weights of this origin.
    ///
    /// # Errors
    /// If they are in a bundle and were altered.
    pub fn open(path: PathBuf, identity: Identity) -> Result<Packed> {
        let opened = match MappedFile::open(&path) {
            Err(error @ ModelError::Bundle(_)) => return Err(error),
            opened => opened.map_err(|error| error.to_string()),
        };
        Ok(match opened.and_then(|file| read(file, identity)) {
            Ok((bytes, matrices)) => Packed::Kept { bytes, matrices },
            Err(reason) => {
                tracing::debug!(path = %path.display(), reason, "no packed weights to map");
                Packed::missing(path, identity)
            }
        })
    }

    /// None yet: those that are packed now will be written to `path`.
    pub fn missing(path: PathBuf, identity: Identity) -> Packed {
        Packed::Missing { path, identity, matrices: Mutex::default() }
    }

    /// The matrix of this name and shape, if it was kept.
    pub fn find(&self, name: &str, rows: usize, cols: usize) -> Option<Matrix> {
        let Packed::Kept { bytes, matrices } = self else { return None };
        let entry = matrices.iter().find(|entry| entry.name == name && (entry.rows, entry.cols) == (rows, cols))?;
        let format = Format::ALL.into_iter().find(|format| format!("{format:?}") == entry.format)?;
        Matrix::from_packed(format, rows, cols, bytes.slice(entry.start..entry.start + entry.len)).ok()
    }

    /// Takes note of a matrix that had to be packed.
    pub fn note(&self, name: &str, matrix: &Matrix) {
        if let Packed::Missing { matrices, .. } = self {
            let mut matrices = matrices.lock().unwrap_or_else(PoisonError::into_inner);
            matrices.push((name.to_owned(), matrix.clone()));
        }
    }

    /// Writes what was noted. A disk that is full or a folder that cannot be written costs the next start its speed and
    /// nothing else.
    pub fn keep(self) {
        if let Err(error) = self.write() {
            tracing::info!(error = &error as &dyn std::error::Error, "packed weights are not kept");
        }
    }

    /// Writes what was noted.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(self) -> Result<()> {
        let Packed::Missing { path, identity, matrices } = self else { return Ok(()) };
        let matrices = matrices.into_inner().unwrap_or_else(PoisonError::into_inner);
        sweep(&path);
        let partial = partial_of(&path);
        let written = write(&partial, identity, &matrices).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|source| {
            let _ = fs::remove_file(&partial);
            ModelError::Io { path, source }
        })
    }
}

/// A temporary name that is unique to this process and write.
fn partial_of(path: &Path) -> PathBuf {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    path.with_extension(format!("{}-{}.partial", std::process::id(), WRITTEN.fetch_add(1, Relaxed)))
}

/// Removes temporary files of killed writers: those that were not modified for an hour.
fn sweep(path: &Path) {
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem().and_then(|stem| stem.to_str())) else { return };
    let left = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let ours = name.starts_with(stem) && name.ends_with(".partial");
        let touched = entry.metadata().and_then(|metadata| metadata.modified());
        ours && touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(left) {
        let _ = fs::remove_file(entry.path());
    }
}

/// `{checkpoint}.packed`, or `weights.packed` in a folder; with the precision in front where it is not the stored one.
pub(crate) fn path_beside(checkpoint: &Path, precision: Option<String>) -> PathBuf {
    let suffix = precision.map_or_else(|| ".packed".to_owned(), |precision| format!(".{precision}.packed"));
    let stem = if files::is_dir(checkpoint) { checkpoint.join("weights") } else { checkpoint.to_owned() };
    let mut name = stem.into_os_string();
    name.push(suffix);
    name.into()
}

/// Where packed weights in their stored precision are looked for, beside a checkpoint.
pub fn packed_beside(checkpoint: &Path) -> PathBuf {
    path_beside(checkpoint, None)
}

fn read(file: MappedFile, identity: Identity) -> std::result::Result<(Bytes, Vec<Entry>), String> {
    let split = file.len().checked_sub(DIGEST_BYTES).ok_or("it is cut off")?;
    let (content, digest) = file.split_at(split);
    let rest = content.strip_prefix(MAGIC).ok_or("it is something else")?;
    let (len, rest) = rest.split_first_chunk::<4>().ok_or("it is cut off")?;
    let head = rest.get(..u32::from_le_bytes(*len) as usize).ok_or("it is cut off")?;
    let head: Head = serde_json::from_slice(head).map_err(|error| error.to_string())?;
    if head.layout != LAYOUT || head.identity != identity.text() {
        return Err("it was packed from something else, or by another version".into());
    }
    if !file.is_checked() && blake3::Hasher::new().update_rayon(content).finalize().as_bytes() != digest {
        return Err("it is damaged".into());
    }
    let within = |entry: &Entry| entry.start.checked_add(entry.len).is_some_and(|end| end <= content.len());
    if !head.matrices.iter().all(within) {
        return Err("a matrix is out of its bounds".into());
    }
    Ok((Bytes::from_owner(file), head.matrices))
}

fn write(path: &Path, identity: Identity, matrices: &[(String, Matrix)]) -> io::Result<()> {
    let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut out = Digesting { inner: file, hasher: blake3::Hasher::new(), at: 0 };
    let mut parts = Vec::new();
    let mut entries = Vec::new();
    for (name, matrix) in matrices {
        let Some((format, packed)) = matrix.packed() else { continue };
        let (rows, cols, len) = (matrix.rows(), matrix.cols(), packed.len());
        entries.push(Entry { name: name.clone(), format: format!("{format:?}"), rows, cols, start: 0, len });
        parts.push(packed);
    }
    let head = place(entries, identity)?;
    out.put(MAGIC)?;
    out.put(&u32::try_from(head.len()).map_err(io::Error::other)?.to_le_bytes())?;
    out.put(&head)?;
    for packed in &parts {
        out.align()?;
        out.put(packed)?;
    }
    let digest = out.hasher.finalize();
    out.inner.write_all(digest.as_bytes())?;
    out.inner.flush()
}

/// The head as it is written, once every matrix has its place behind it.
fn place(mut matrices: Vec<Entry>, identity: Identity) -> io::Result<Vec<u8>> {
    let render = |matrices: &[Entry]| {
        let head = Head { layout: LAYOUT, identity: identity.text(), matrices: matrices.to_vec() };
        serde_json::to_vec(&head).map_err(io::Error::other)
    };
    // The places are written in the head, and the head's length decides the places: room for the longest, then blanks.
    matrices.iter_mut().for_each(|entry| entry.start = usize::MAX);
    let len = render(&matrices)?.len();
    let mut at = MAGIC.len() + 4 + len;
    for entry in &mut matrices {
        entry.start = at.next_multiple_of(ALIGNMENT);
        at = entry.start + entry.len;
    }
    let mut head = render(&matrices)?;
    head.resize(len, b' ');
    Ok(head)
}

impl Identity {
    fn text(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

/// A writer that knows where it is and what went through it.
struct Digesting<W> {
    inner: W,
    hasher: blake3::Hasher,
    at: usize,
}

impl<W: Write> Digesting<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update_rayon(bytes);
        self.at += bytes.len();
        self.inner.write_all(bytes)
    }

    fn align(&mut self) -> io::Result<()> {
        let zeros = self.at.next_multiple_of(ALIGNMENT) - self.at;
        self.put(&[0; ALIGNMENT][..zeros])
    }
}
