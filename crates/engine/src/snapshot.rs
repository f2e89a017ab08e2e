//! Snapshots of prefixes: their KV pages, saved to one file and mapped after a restart.
//!
//! A file has magic, version, header length, header (JSON), the page table (parent, tokens), the keys and values of the
//! pages, and the BLAKE3 digest of all preceding bytes. The header has a digest of what keys and values depend on
//! (weights, quantisation, rotary embedding, tokenizer and chat template, precision and layout) and their namespace. A
//! file that does not match is refused and its prefixes are computed again; a file is written under a temporary name
//! and renamed, so it is never partial.

mod checked;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use models::{DecoderSpec, KvCache, KvPrecision, MappedFile, ModelError, Source};
use scheduler::{Namespace, PAGE_TOKENS, PageId, SavedPage};
use serde::{Deserialize, Serialize};

pub(crate) use checked::CheckedSnapshots;

const MAGIC: &[u8; 8] = b"MEMLOCKV";
/// Version 1 had no namespace.
const VERSION: u32 = 2;
const DIGEST_BYTES: usize = 32;
/// Parent of the first page of a prefix.
const NO_PARENT: u32 = u32::MAX;
/// A temporary file that has not been written to for this long belongs to a process that was killed.
const ABANDONED: Duration = Duration::from_hours(1);
/// Bytes of an entry of the page table: parent and tokens.
const ENTRY_BYTES: usize = 4 * (1 + PAGE_TOKENS);

/// Why a snapshot was not written or not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    /// Other weights, quantisation, tenant or layout.
    #[error("{} was saved by another model, for another tenant or in another format", path.display())]
    Mismatch { path: PathBuf },
    /// The file is damaged.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: &'static str },
    /// An error of the operating system.
    #[error("{} cannot be saved", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The model cannot be identified, or its pages cannot be read or written.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Pages were evicted before they were copied.
    #[error("{} was not saved, since its pages left the KV cache meanwhile", path.display())]
    Evicted { path: PathBuf },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Closed,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    /// Digest of everything that keys and values depend on.
    identity: String,
    namespace: u64,
    page_tokens: usize,
    page_bytes: usize,
    pages: usize,
}

/// What a model's keys and values depend on.
#[derive(Debug)]
pub(crate) struct Identity {
    /// Weights, tokenizer and chat template, and the precision in which they were loaded.
    pub source: Source,
    /// The specification, with the rotary embedding and its scaling.
    pub spec: DecoderSpec,
    pub kv_precision: KvPrecision,
    /// CPU kernels with the same numerics give the same bits on all machines; a GPU or another backend gives its own.
    pub arithmetic: String,
    pub known: OnceLock<String>,
}

impl Identity {
    /// A digest of all of it; computed once, which takes about a second for a few gigabytes.
    pub fn digest(&self) -> Result<String, ModelError> {
        if let Some(known) = self.known.get() {
            return Ok(known.clone());
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.source.digest()?);
        hasher.update(format!("{:?} {:?} {}", self.spec, self.kv_precision, self.arithmetic).as_bytes());
        Ok(self.known.get_or_init(|| hasher.finalize().to_hex().to_string()).clone())
    }
}

/// Some cached pages, copied to be written to a snapshot.
pub(crate) struct CopiedPages {
    /// All pages of the snapshot.
    pub pages: Vec<(SavedPage, PageId)>,
    /// The first pages of this cache are the copies.
    pub copies: KvCache,
    pub count: usize,
}

/// A snapshot that is being written.
pub(crate) struct Writing {
    path: PathBuf,
    aside: TemporaryFile,
    out: Digesting<BufWriter<std::fs::File>>,
}

/// A temporary file, deleted when dropped unless it has been renamed: a partial file is useless.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Creates one beside `path` that only its owner may read, since it contains the tokens of prompts. Its name is its own,
    /// because engines of several processes can save the same prefixes at once.
    fn create(path: &Path) -> std::io::Result<(TemporaryFile, std::fs::File)> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        loop {
            let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
            let aside = path.with_extension(format!("{}-{number}.new", std::process::id()));
            match options.open(&aside) {
                // Processes of different containers can have the same id.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                created => return Ok((TemporaryFile(aside), created?)),
            }
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Writing {
    /// Creates a file and writes its header and page table.
    pub fn begin(
        path: &Path,
        identity: &str,
        namespace: Namespace,
        page_bytes: usize,
        pages: &[(SavedPage, PageId)],
    ) -> Result<Writing, SnapshotError> {
        let header = Header {
            identity: identity.to_owned(),
            namespace: namespace.0,
            page_tokens: PAGE_TOKENS,
            page_bytes,
            pages: pages.len(),
        };
        let begin = || {
            if let Some(folder) = path.parent() {
                make_private(folder)?;
                sweep(folder)?;
            }
            let (aside, file) = TemporaryFile::create(path)?;
            let mut out = Digesting::new(BufWriter::new(file));
            let header = serde_json::to_vec(&header)?;
            out.write_all(MAGIC)?;
            out.write_all(&VERSION.to_le_bytes())?;
            out.write_all(&to_u32(header.len()).to_le_bytes())?;
            out.write_all(&header)?;
            for (page, _) in pages {
                out.write_all(&page.parent.map_or(NO_PARENT, to_u32).to_le_bytes())?;
                page.tokens.iter().try_for_each(|token| out.write_all(&token.to_le_bytes()))?;
            }
            Ok((aside, out))
        };
        let (aside, out) = begin().map_err(|source| SnapshotError::Io { path: path.to_owned(), source })?;
        Ok(Writing { path: path.to_owned(), aside, out })
    }

    /// Appends copied pages.
    pub fn copied(&mut self, CopiedPages { copies, count, .. }: &CopiedPages) -> Result<(), SnapshotError> {
        let mut bytes = Vec::new();
        for index in 0..*count {
            bytes.clear();
            copies.read_page(index, &mut bytes)?;
            self.page(&bytes)?;
        }
        Ok(())
    }

    /// Appends the contents of the next page.
    pub fn page(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.out.write_all(bytes).map_err(|source| SnapshotError::Io { path: self.path.clone(), source })
    }

    /// Writes the digest and renames the file.
    pub fn end(self) -> Result<(), SnapshotError> {
        let Writing { path, aside, out } = self;
        let end = || {
            let (mut out, digest) = (out.inner, out.digest.finalize());
            out.write_all(digest.as_bytes())?;
            let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.sync_all()?;
            std::fs::rename(&aside.0, &path)
        };
        end().map_err(|source| SnapshotError::Io { path: path.clone(), source })
    }
}

/// Creates a folder that only its owner may access, if it does not exist.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Deletes the temporary files that killed processes have left in a folder.
fn sweep(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let written = || std::fs::metadata(&path).and_then(|metadata| metadata.modified());
        if path.extension().is_some_and(|extension| extension == "new")
            && written().is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= ABANDONED))
        {
            let _deleted_by_another = std::fs::remove_file(&path);
        }
    }
    Ok(())
}

/// A validated snapshot.
pub(crate) struct Saved {
    file: MappedFile,
    pub books: Vec<SavedPage>,
    page_bytes: usize,
    /// Offset of the first page.
    start: usize,
}

impl Saved {
    /// Opens and validates a file; its digest is checked unless it is known to be `whole`.
    pub fn open(
        path: &Path,
        identity: &str,
        namespace: Namespace,
        page_bytes: usize,
        whole: bool,
    ) -> Result<Saved, SnapshotError> {
        let damaged = |reason| SnapshotError::Damaged { path: path.to_owned(), reason };
        let file = MappedFile::open(path)?;
        let (content, digest) = file
            .len()
            .checked_sub(DIGEST_BYTES)
            .map(|at| file.split_at(at))
            .ok_or_else(|| damaged("it is too short"))?;
        if !whole && blake3::hash(content).as_bytes() != digest {
            return Err(damaged("its digest does not match"));
        }
        let rest = content.strip_prefix(MAGIC.as_slice()).ok_or_else(|| damaged("it is not a snapshot"))?;
        let (version, rest) = number(rest).ok_or_else(|| damaged("it has no version"))?;
        if version != VERSION {
            return Err(SnapshotError::Mismatch { path: path.to_owned() });
        }
        let (header_bytes, rest) = number(rest).ok_or_else(|| damaged("it has no header"))?;
        let (header, rest) = rest.split_at_checked(header_bytes as usize).ok_or_else(|| damaged("it has no header"))?;
        let header: Header = serde_json::from_slice(header).map_err(|_| damaged("its header is invalid"))?;
        let layout = (header.page_tokens, header.page_bytes);
        if header.identity != identity || header.namespace != namespace.0 || layout != (PAGE_TOKENS, page_bytes) {
            return Err(SnapshotError::Mismatch { path: path.to_owned() });
        }
        if Some(rest.len()) != header.pages.checked_mul(ENTRY_BYTES + page_bytes) {
            return Err(damaged("its length does not match its header"));
        }
        let books = rest[..header.pages * ENTRY_BYTES].chunks_exact(ENTRY_BYTES).map(entry).collect();
        let start = content.len() - header.pages * page_bytes;
        Ok(Saved { file, books, page_bytes, start })
    }

    /// The contents of a page.
    pub fn page(&self, index: usize) -> &[u8] {
        &self.file[self.start + index * self.page_bytes..][..self.page_bytes]
    }
}

fn entry(bytes: &[u8]) -> SavedPage {
    let mut numbers = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    let parent = numbers.next().filter(|parent| *parent != NO_PARENT).map(|parent| parent as usize);
    SavedPage { parent, tokens: numbers.collect() }
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).expect("pages and headers are far below 2^32")
}

/// Digests what is written.
struct Digesting<W> {
    inner: W,
    digest: blake3::Hasher,
}

impl<W> Digesting<W> {
    fn new(inner: W) -> Digesting<W> {
        Digesting { inner, digest: blake3::Hasher::new() }
    }
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests;
