//! Nearest-neighbour search over the vectors of passages, for search by meaning.
//!
//! Up to 20,000 vectors are scanned exactly; more are searched through a saved graph. Both are derived from the vectors
//! in the database. A graph identifies its vectors by the digests in `vector.key`, so its file need not be up to date:
//! a key that is in the database identifies exactly that vector, keys that are not are skipped, and missing ones are
//! added. The vectors of a shared corpus are searched in PostgreSQL instead (shared/vectors.rs).
//!
//! Useful for: paraphrases, other languages. Not useful for: names and numbers unknown to the embedder.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::derived_files::delete_graphs;
use crate::graph::Graph;
use crate::hit::best;
use crate::shared::{BATCH, MAX_CANDIDATES, Table, Tables};
use crate::vector::{VectorRef, unit};
use crate::{Corpus, DocId, Error, Hit, Layer, PassageId, Result, Writer};

/// Up to this many vectors are scanned exactly: about 5 ms at 1,024 dimensions.
const EXACT_LIMIT: usize = 20_000;

/// An index over the vectors of one embedder for the passages of one layer. A passage scores as its best part.
pub struct DenseIndex {
    embedder: String,
    dims: usize,
    /// Ordered by passage and part.
    refs: Vec<VectorRef>,
    vectors: Vectors,
    file_name: String,
    /// Whether the graph has vectors that its file lacks, or has no file.
    unsaved: bool,
}

enum Vectors {
    /// The numbers of all vectors, concatenated in the order of the refs.
    Flat(Vec<f32>),
    Graph {
        graph: Graph,
        passages: HashMap<u64, PassageId>,
    },
    /// In PostgreSQL, for several processes.
    Shared {
        table: Table,
        passages: HashMap<u64, PassageId>,
    },
}

impl DenseIndex {
    /// Opens the index of a layer: loads the saved graph, if there is an intact one, and brings it up to date.
    ///
    /// # Errors
    /// Errors of reading the database; a missing or damaged file is not an error.
    pub fn open(corpus: &Corpus, layer: Layer, embedder: &str) -> Result<Self> {
        Self::open_with(corpus, layer, embedder, EXACT_LIMIT)
    }

    fn open_with(corpus: &Corpus, layer: Layer, embedder: &str, exact_limit: usize) -> Result<Self> {
        let refs = corpus.vector_refs(layer, embedder)?;
        let first = refs.first().map(|first| corpus.vectors(embedder, first.passage)).transpose()?;
        let dims = first.and_then(|parts| Some(parts.first()?.vector.len())).unwrap_or(0);
        let mut index = Self {
            embedder: embedder.to_owned(),
            dims,
            vectors: Vectors::Flat(Vec::new()),
            refs,
            file_name: graph_name(layer, embedder),
            unsaved: false,
        };
        if let Some(tables) = corpus.tables.as_ref().filter(|_| dims > 0) {
            index.open_table(tables.open(layer, embedder, dims)?, corpus, exact_limit)?;
        } else if index.refs.len() <= exact_limit {
            index.vectors = Vectors::Flat(index.flat(corpus)?);
        } else {
            index.open_graph(corpus)?;
        }
        Ok(index)
    }

    /// Saves the graph, if there is one and it has changed. The `writer` argument guarantees that no other process
    /// saves it.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`]; the old file is kept then.
    pub fn save(&mut self, writer: &Writer) -> Result<()> {
        if let Vectors::Graph { graph, .. } = &self.vectors
            && self.unsaved
        {
            graph.save(&writer.folder().join(&self.file_name))?;
            self.unsaved = false;
        }
        Ok(())
    }

    /// The `k` passages whose vectors have the highest cosine similarity to `query`.
    ///
    /// # Errors
    /// [`Error::BadVector`] for a query with other dimensions, NaN, or zero length.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<Hit>> {
        if k == 0 || self.refs.is_empty() {
            return Ok(Vec::new());
        }
        let query = self.unit(query)?;
        match &self.vectors {
            Vectors::Flat(numbers) => {
                let scores = numbers.chunks_exact(self.dims).map(|vector| dot(&query, vector));
                Ok(best(best_parts(self.refs.iter().map(|part| part.passage).zip(scores)), k))
            }
            Vectors::Graph { graph, passages } => {
                walk(passages, k, Extent::all(graph.len()), |wanted| graph.search(&query, wanted))
            }
            Vectors::Shared { table, passages } => {
                walk(passages, k, Extent::exact_above(MAX_CANDIDATES), |wanted| table.search(&query, wanted))
            }
        }
    }

    /// The same for some passages only, by exact scan.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_among(&self, query: &[f32], k: usize, among: &BTreeSet<PassageId>) -> Result<Vec<Hit>> {
        if k == 0 || self.refs.is_empty() {
            return Ok(Vec::new());
        }
        let query = self.unit(query)?;
        Ok(best(best_parts(self.scores(&query, among)?.into_iter()), k))
    }

    fn unit(&self, query: &[f32]) -> Result<Vec<f32>> {
        unit(query, self.dims).map_err(|problem| Error::BadVector { embedder: self.embedder.clone(), problem })
    }

    /// The range of a passage's parts in the refs.
    fn places(&self, passage: PassageId) -> Range<usize> {
        self.refs.partition_point(|part| part.passage < passage)
            ..self.refs.partition_point(|part| part.passage <= passage)
    }

    /// The scores of all parts of some passages.
    fn scores(&self, query: &[f32], among: &BTreeSet<PassageId>) -> Result<Vec<(PassageId, f32)>> {
        let parts = among.iter().flat_map(|passage| self.places(*passage)).map(|place| (place, self.refs[place]));
        match &self.vectors {
            Vectors::Flat(numbers) => {
                let vector = |place: usize| &numbers[place * self.dims..][..self.dims];
                Ok(parts.map(|(place, part)| (part.passage, dot(query, vector(place)))).collect())
            }
            Vectors::Graph { graph, .. } => {
                parts.map(|(_, part)| Ok((part.passage, dot(query, &graph.vector(part.key)?)))).collect()
            }
            Vectors::Shared { table, passages } => {
                let keys: Vec<u64> = parts.map(|(_, part)| part.key).collect();
                let found = table.scores(query, &keys)?.into_iter();
                Ok(found.filter_map(|(key, score)| Some((*passages.get(&key)?, score))).collect())
            }
        }
    }

    fn flat(&self, corpus: &Corpus) -> Result<Vec<f32>> {
        let mut numbers = Vec::with_capacity(self.refs.len() * self.dims);
        for of_passage in self.refs.chunk_by(|a, b| a.passage == b.passage) {
            let parts = corpus.vectors(&self.embedder, of_passage[0].passage)?;
            if parts.len() != of_passage.len() || parts.iter().any(|part| part.vector.len() != self.dims) {
                return Err(lost(corpus, of_passage[0].passage));
            }
            numbers.extend(parts.into_iter().flat_map(|part| part.vector));
        }
        Ok(numbers)
    }

    /// Inserts the vectors that a table lacks. Surplus vectors are kept: other clients may still search them.
    fn open_table(&mut self, table: Table, corpus: &Corpus, exact_limit: usize) -> Result<()> {
        let passages: HashMap<u64, PassageId> = self.refs.iter().map(|part| (part.key, part.passage)).collect();
        let there = table.keys()?;
        let missing: Vec<VectorRef> = self.refs.iter().filter(|part| !there.contains(&part.key)).copied().collect();
        let mut batch = Vec::new();
        for of_passage in missing.chunk_by(|a, b| a.passage == b.passage) {
            let parts = corpus.vectors(&self.embedder, of_passage[0].passage)?;
            for missing in of_passage {
                let part = parts.get(missing.part as usize).ok_or_else(|| lost(corpus, missing.passage))?;
                batch.push((missing.key, part.vector.clone()));
            }
            if batch.len() >= BATCH {
                table.insert(&std::mem::take(&mut batch))?;
            }
        }
        table.insert(&batch)?;
        if self.refs.len() > exact_limit {
            table.index(self.dims)?;
        }
        self.vectors = Vectors::Shared { table, passages };
        Ok(())
    }

    fn open_graph(&mut self, corpus: &Corpus) -> Result<()> {
        let saved = Graph::load(&corpus.folder().join(&self.file_name), self.dims)?;
        let live = |graph: &Graph| self.refs.iter().filter(|part| graph.contains(part.key)).count();
        // A graph is rebuilt if more than a quarter of its vectors are stale.
        let mut graph = match saved.filter(|graph| graph.len() - live(graph) <= self.refs.len() / 4) {
            Some(graph) => graph,
            None => Graph::new(self.dims)?,
        };
        let missing: Vec<VectorRef> = self.refs.iter().filter(|part| !graph.contains(part.key)).copied().collect();
        graph.reserve(missing.len())?;
        for of_passage in missing.chunk_by(|a, b| a.passage == b.passage) {
            let parts = corpus.vectors(&self.embedder, of_passage[0].passage)?;
            for missing in of_passage {
                let part = parts.get(missing.part as usize).ok_or_else(|| lost(corpus, missing.passage))?;
                graph.add(missing.key, &part.vector)?;
            }
        }
        self.unsaved = !missing.is_empty();
        let passages = self.refs.iter().map(|part| (part.key, part.passage)).collect();
        self.vectors = Vectors::Graph { graph, passages };
        Ok(())
    }
}

impl Writer {
    /// Deletes all saved graphs and empties shared tables: they hold vectors of passages that may have been removed
    /// since.
    pub(crate) fn delete_graphs(&self) -> Result<()> {
        self.tables.as_ref().map_or(Ok(()), Tables::clear)?;
        delete_graphs(self.folder())
    }

    /// Deletes the vectors of a document from shared tables, unless the corpus has readers.
    pub(crate) fn forget_vectors(&self, document: DocId) -> Result<()> {
        let Some(tables) = &self.tables else { return Ok(()) };
        let _alone = match tables.hold.alone() {
            Err(Error::CorpusBusy { .. }) => return Ok(()),
            alone => alone?,
        };
        let keys = "SELECT key FROM vector JOIN passage ON passage.id = passage WHERE document = ?";
        let keys = self.database.rows(keys, [document], |row| row.get::<_, i64>(0))?;
        tables.delete(&keys.into_iter().map(i64::cast_unsigned).collect::<Vec<_>>())
    }
}

fn graph_name(layer: Layer, embedder: &str) -> String {
    format!("dense-{}-{}.usearch", layer.as_str(), &blake3::hash(embedder.as_bytes()).to_hex()[..16])
}

fn lost(corpus: &Corpus, passage: PassageId) -> Error {
    corpus.database.damaged(format!("the vectors of passage {passage} are not those that were put in"))
}

/// How far the number of requested vectors is raised. A search in an index is approximate and may find fewer vectors than it is
/// asked for although there are more: pgvector leaves deleted vectors out only after the search.
#[derive(Clone, Copy)]
struct Extent {
    /// Most vectors that are requested.
    most: usize,
    /// Requests for more vectors than this are answered by an exact scan.
    exact_above: usize,
}

impl Extent {
    /// The extent of an index with this many vectors.
    fn all(vectors: usize) -> Self {
        Self { most: vectors, exact_above: usize::MAX }
    }

    /// The extent of a table whose number of vectors is not known.
    fn exact_above(exact_above: usize) -> Self {
        Self { most: usize::MAX, exact_above }
    }

    /// Whether there are no vectors beside the `found` ones, of `wanted` that were requested.
    fn is_exhausted(self, wanted: usize, found: usize) -> bool {
        wanted == self.most || (wanted > self.exact_above && found < wanted)
    }
}

/// Doubles the number of requested vectors until `k` passages are found or no vectors are left.
fn walk(
    passages: &HashMap<u64, PassageId>,
    k: usize,
    extent: Extent,
    search: impl Fn(usize) -> Result<Vec<(u64, f32)>>,
) -> Result<Vec<Hit>> {
    let mut wanted = k.min(extent.most);
    loop {
        let found = search(wanted)?;
        let is_exhausted = extent.is_exhausted(wanted, found.len());
        let known = found.into_iter().filter_map(|(key, score)| Some((*passages.get(&key)?, score)));
        let known: Vec<(PassageId, f32)> = known.collect();
        let all = is_exhausted || known.len() == passages.len();
        let hits = best_parts(known.into_iter());
        if all || hits.len() >= k {
            return Ok(best(hits, k));
        }
        wanted = wanted.saturating_mul(2).min(extent.most);
    }
}

/// One hit for each passage, with the highest score of its parts.
fn best_parts(scored: impl Iterator<Item = (PassageId, f32)>) -> Vec<Hit> {
    let mut best = HashMap::<PassageId, f32>::new();
    for (passage, score) in scored {
        best.entry(passage).and_modify(|known| *known = known.max(score)).or_insert(score);
    }
    best.into_iter().map(|(passage, score)| Hit { passage, score }).collect()
}

/// The inner product, in sixteen partial sums so that the compiler can use SIMD registers.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<16>();
    let (b, b_rest) = b.as_chunks::<16>();
    let mut sums = [0.0_f32; 16];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests;
