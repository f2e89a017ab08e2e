//! A saved nearest-neighbour graph (HNSW, by usearch) with protection against damaged files.
//!
//! usearch writes in place and crashes on some flipped bits. The file is therefore written under a temporary name and
//! renamed; it ends with the BLAKE3 digest of its content and is loaded only if the digest matches. It is derived data:
//! a damaged file is treated as a missing one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use crate::{Error, Result, private};

const DIGEST_BYTES: usize = 32;

/// Links of each node; usearch's default.
const CONNECTIVITY: usize = 16;
/// Number of candidates examined to insert a node and to answer a query: 1.000 recall@10 on 20,000 clustered vectors.
const EXPANSION_ADD: usize = 128;
const EXPANSION_SEARCH: usize = 96;

/// Number of searches that can run concurrently.
const THREADS: usize = 256;

/// Unit vectors with 64-bit keys, searched by inner product.
pub(crate) struct Graph {
    index: Index,
    dims: usize,
}

impl Graph {
    pub(crate) fn new(dims: usize) -> Result<Self> {
        let options = IndexOptions {
            dimensions: dims,
            metric: MetricKind::IP,
            quantization: ScalarKind::F32,
            connectivity: CONNECTIVITY,
            expansion_add: EXPANSION_ADD,
            expansion_search: EXPANSION_SEARCH,
            multi: false,
        };
        Ok(Self { index: Index::new(&options).map_err(failed)?, dims })
    }

    /// Loads a saved graph; none if the file is missing, damaged, or of other vectors.
    pub(crate) fn load(path: &Path, dims: usize) -> Result<Option<Self>> {
        if !is_whole(path).unwrap_or(false) {
            return Ok(None);
        }
        let graph = Self::new(dims)?;
        let loaded = path.to_str().is_some_and(|path| graph.index.load(path).is_ok());
        Ok((loaded && graph.index.dimensions() == dims).then_some(graph))
    }

    /// Writes the graph atomically: the file at `path` is always either the old one or the complete new one.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let aside = path.with_extension("new");
        let name =
            aside.to_str().ok_or_else(|| Error::Index { what: format!("{} is not Unicode", aside.display()) })?;
        // usearch saves into an existing file and keeps its permissions.
        private::create(&aside).map_err(|source| Error::io(&aside, source))?;
        self.index.save(name).map_err(failed)?;
        seal(&aside).and_then(|()| fs::rename(&aside, path)).map_err(|source| Error::io(&aside, source))
    }

    /// Reserves capacity for more vectors; must be called before adding them.
    pub(crate) fn reserve(&self, more: usize) -> Result<()> {
        self.index.reserve_capacity_and_threads(self.len() + more, THREADS).map_err(failed)
    }

    /// Adds a vector. `&mut self` limits this to one thread: concurrent insertion leaves nodes that no search reaches.
    pub(crate) fn add(&mut self, key: u64, vector: &[f32]) -> Result<()> {
        self.index.add(key, vector).map_err(failed)
    }

    pub(crate) fn contains(&self, key: u64) -> bool {
        self.index.contains(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.index.size()
    }

    /// The vector of a key.
    pub(crate) fn vector(&self, key: u64) -> Result<Vec<f32>> {
        let mut vector = vec![0.0; self.dims];
        self.index.get(key, &mut vector).map_err(failed)?;
        Ok(vector)
    }

    /// The keys of approximately the `count` nearest vectors and their inner products with `query`, nearest first.
    pub(crate) fn search(&self, query: &[f32], count: usize) -> Result<Vec<(u64, f32)>> {
        let found = self.index.search(query, count).map_err(failed)?;
        Ok(found.keys.into_iter().zip(found.distances).map(|(key, distance)| (key, 1.0 - distance)).collect())
    }
}

/// Appends the digest and synchronises the file to the disk.
fn seal(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let digest = blake3::Hasher::new().update_reader(&file)?.finalize();
    file.write_all(digest.as_bytes())?;
    file.sync_all()
}

/// Whether a file ends with the digest of all bytes before it.
fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let Some(content_bytes) = file.metadata()?.len().checked_sub(DIGEST_BYTES as u64) else { return Ok(false) };
    let digest = blake3::Hasher::new().update_reader((&file).take(content_bytes))?.finalize();
    let mut sealed = [0; DIGEST_BYTES];
    file.seek(SeekFrom::Start(content_bytes))?;
    file.read_exact(&mut sealed)?;
    Ok(digest == sealed)
}

fn failed(exception: impl std::fmt::Display) -> Error {
    Error::Index { what: exception.to_string() }
}
