//! Nearest vectors: "which passages mean something like this?"
//!
//! Up to 20,000 vectors are compared one by one; more are found through a saved graph. Both are derived from the
//! vectors in the database. A graph knows its vectors by the digests in `vector.key`: whatever file it was read from, a
//! key that the database has stands for the very vector there, keys that it lacks are passed over, and missing ones are
//! added. The vectors of a shared corpus are searched in PostgreSQL instead (shared/vectors.rs).
//!
//! Useful for: paraphrases, other languages. Not useful for: names and numbers that the embedder has never seen.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::graph::Graph;
use crate::hit::best;
use crate::shared::{BATCH, Table, Tables};
use crate::vector::{VectorRef, unit};
use crate::{Corpus, DocId, Error, Hit, Layer, PassageId, Result, Writer};

/// Up to this many vectors an exact scan is used: about 5 ms at 1,024 dimensions.
const EXACT_LIMIT: usize = 20_000;

/// An index over the vectors that one embedder gave the passages of one layer. A passage scores as its best part.
pub struct DenseIndex {
    embedder: String,
    dims: usize,
    /// By passage and part.
    refs: Vec<VectorRef>,
    vectors: Vectors,
    file_name: String,
    /// Whether the graph has vectors that its file has not, or none of its own.
    unsaved: bool,
}

enum Vectors {
    /// All numbers one after the other, in the order of the refs.
    Flat(Vec<f32>),
    Graph {
        graph: Graph,
        passages: HashMap<u64, PassageId>,
    },
    /// Elsewhere, for several processes.
    Shared {
        table: Table,
        passages: HashMap<u64, PassageId>,
    },
}

impl DenseIndex {
    /// Opens the index of a layer: reads the saved graph, if there is a good one, and brings it up to date.
    ///
    /// # Errors
    /// As reading the database; a missing or damaged file is not an error.
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

    /// Saves the graph, if there is one and it has changed. The writer is proof that nobody else does.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`]; the old file is still there then.
    pub fn save(&mut self, writer: &Writer) -> Result<()> {
        if let Vectors::Graph { graph, .. } = &self.vectors
            && self.unsaved
        {
            graph.save(&writer.folder().join(&self.file_name))?;
            self.unsaved = false;
        }
        Ok(())
    }

    /// The `k` passages whose vectors have the highest cosines with `query`.
    ///
    /// # Errors
    /// [`Error::BadVector`] for a query of other dimensions, with NaN, or of no length.
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
            Vectors::Graph { graph, passages } => walk(passages, k, graph.len(), |wanted| graph.search(&query, wanted)),
            Vectors::Shared { table, passages } => walk(passages, k, usize::MAX, |wanted| table.search(&query, wanted)),
        }
    }

    /// The same among some passages only, compared one by one.
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

    /// Where the parts of a passage stand among the refs.
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

    /// Puts into a table what it lacks. What it has too much, others may still search.
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
        // A graph of which more than a quarter is gone is not worth keeping.
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
    /// Deletes all saved graphs and empties shared tables, which hold vectors of whatever was in the corpus when they were
    /// made.
    pub(crate) fn delete_graphs(&self) -> Result<()> {
        self.tables.as_ref().map_or(Ok(()), Tables::clear)?;
        delete_graphs(self.folder())
    }

    /// Deletes the vectors of a document from shared tables, unless somebody searches them.
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

/// Deletes all saved graphs of the corpus in a folder.
pub(crate) fn delete_graphs(corpus: &Path) -> Result<()> {
    for path in graph_files(corpus).map_err(|source| Error::io(corpus, source))? {
        fs::remove_file(&path).map_err(|source| Error::io(&path, source))?;
    }
    Ok(())
}

fn graph_name(layer: Layer, embedder: &str) -> String {
    format!("dense-{}-{}.usearch", layer.as_str(), &blake3::hash(embedder.as_bytes()).to_hex()[..16])
}

fn graph_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("dense-") {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

fn lost(corpus: &Corpus, passage: PassageId) -> Error {
    corpus.database.damaged(format!("the vectors of passage {passage} are not those that were put in"))
}

/// Asks for more and more until `k` passages are found or there are no more.
fn walk(
    passages: &HashMap<u64, PassageId>,
    k: usize,
    most: usize,
    search: impl Fn(usize) -> Result<Vec<(u64, f32)>>,
) -> Result<Vec<Hit>> {
    let mut wanted = k.min(most);
    loop {
        let found = search(wanted)?;
        let all = found.len() < wanted || wanted == most;
        let known = found.into_iter().filter_map(|(key, score)| Some((*passages.get(&key)?, score)));
        let hits = best_parts(known);
        if all || hits.len() >= k {
            return Ok(best(hits, k));
        }
        wanted = wanted.saturating_mul(2).min(most);
    }
}

/// One hit for each passage, from the scores of its parts.
fn best_parts(scored: impl Iterator<Item = (PassageId, f32)>) -> Vec<Hit> {
    let mut best = HashMap::<PassageId, f32>::new();
    for (passage, score) in scored {
        best.entry(passage).and_modify(|known| *known = known.max(score)).or_insert(score);
    }
    best.into_iter().map(|(passage, score)| Hit { passage, score }).collect()
}

/// The inner product, in sixteen sums so that the compiler can use wide registers.
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
