//! The saved graph gives correct results in any state of its file. The exact limit is lowered so that small corpora
//! have a graph.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;

use tempfile::TempDir;

use super::{DenseIndex, Extent, graph_name, unit, walk};
use crate::{Corpora, Corpus, Hit, Layer, Meta, NewDocument, NewPassage, Part, PassageId, Result, Writer};

const DIMS: usize = 16;

struct Garden {
    folder: TempDir,
    writer: Writer,
    planted: usize,
}

impl Garden {
    fn new(documents: usize) -> Result<Self> {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let writer = Corpora::new(folder.path()).create("garden")?;
        let mut garden = Self { folder, writer, planted: 0 };
        (0..documents).try_for_each(|_| garden.plant())?;
        Ok(garden)
    }

    /// Adds a document of ten passages with two vectors each, different from all others.
    fn plant(&mut self) -> Result<()> {
        let passage =
            |start| NewPassage { layer: Layer::Chunk, bytes: start..start + 1, tokens: 1, meta: Meta::default() };
        let passages: Vec<NewPassage> = (0..10).map(passage).collect();
        let path = format!("document {}", self.planted);
        let new = NewDocument { path: &path, kind: "text", title: "", text: "0123456789", passages: &passages };
        let (document, _) = self.writer.put_document(&new)?;
        let embedded = self.writer.passages_of(document, Layer::Chunk)?.into_iter().map(|passage| {
            let seed = (self.planted * 10 + passage.ordinal as usize) * 2;
            (passage.id, [seed, seed + 1].map(|seed| Part { span: passage.span, vector: vector(seed) }).to_vec())
        });
        let embedded: Vec<_> = embedded.collect();
        self.planted += 1;
        self.writer.put_vectors("tiny", &embedded)
    }

    fn graph(&self) -> Result<DenseIndex> {
        DenseIndex::open_with(&self.writer, Layer::Chunk, "tiny", 0)
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("corpora/garden").join(graph_name(Layer::Chunk, "tiny"))
    }

    /// The graph finds what an exact scan finds.
    fn check(&self, index: &DenseIndex) -> Result<()> {
        let exact = DenseIndex::open(&self.writer, Layer::Chunk, "tiny")?;
        for seed in 0..20 {
            let query = vector(seed * 7 + 1_000_000);
            assert_eq!(ids(&index.search(&query, 5)?), ids(&exact.search(&query, 5)?), "query {seed}");
            let among: BTreeSet<PassageId> = exact.refs.iter().step_by(seed + 2).map(|part| part.passage).collect();
            let (found, expected) = (index.search_among(&query, 5, &among)?, exact.search_among(&query, 5, &among)?);
            assert_eq!(found, expected);
            assert!(found.iter().all(|hit| among.contains(&hit.passage)));
        }
        Ok(())
    }
}

/// Reproducible pseudo-random numbers between -1 and 1 (the constants of Knuth's MMIX).
fn vector(seed: usize) -> Vec<f32> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from(i16::try_from(state >> 49).unwrap_or(0)) / 16_384.0 - 1.0
    };
    (0..DIMS + 4).map(|_| next()).skip(4).collect()
}

fn ids(hits: &[Hit]) -> Vec<PassageId> {
    hits.iter().map(|hit| hit.passage).collect()
}

#[test]
fn a_graph_finds_what_a_scan_finds() -> Result<()> {
    let garden = Garden::new(30)?;
    let mut index = garden.graph()?;
    garden.check(&index)?;
    index.save(&garden.writer)?;
    let saved = fs::read(garden.file()).expect("the graph was saved");
    let mut loaded = garden.graph()?;
    assert!(!loaded.unsaved, "a good file is used");
    garden.check(&loaded)?;
    loaded.save(&garden.writer)?;
    assert_eq!(fs::read(garden.file()).expect("the file is there"), saved);
    assert_eq!(loaded.search(&vector(3), 1_000)?.len(), 300);
    assert_eq!(loaded.search(&vector(3), 0)?, []);
    Ok(())
}

#[test]
fn a_damaged_graph_is_built_again() -> Result<()> {
    let garden = Garden::new(12)?;
    garden.graph()?.save(&garden.writer)?;
    let good = fs::read(garden.file()).expect("the graph was saved");
    let check = |bad: &[u8]| {
        fs::write(garden.file(), bad).expect("the file can be written");
        let index = garden.graph()?;
        assert!(index.unsaved, "a damaged file was used");
        garden.check(&index)
    };
    for length in [0, 1, 31, 32, 33, good.len() / 2, good.len() - 1] {
        check(&good[..length])?;
    }
    check(&[&good[..], b"x"].concat())?;
    for flip in 0..200 {
        let mut bad = good.clone();
        bad[(flip * 7_919) % good.len()] ^= 1 << (flip % 8);
        check(&bad)?;
    }
    fs::remove_file(garden.file()).expect("the file can be removed");
    garden.check(&garden.graph()?)
}

#[test]
fn a_graph_of_another_embedder_is_not_used() -> Result<()> {
    let (mut garden, mut wide) = (Garden::new(3)?, Garden::new(1)?);
    let passage = wide.writer.passages(Layer::Chunk)?.remove(0);
    let part = Part { span: passage.span, vector: vec![1.0; DIMS * 2] };
    wide.writer.put_vectors("wide", &[(passage.id, vec![part])])?;
    DenseIndex::open_with(&wide.writer, Layer::Chunk, "wide", 0)?.save(&wide.writer)?;
    let file = wide.file().with_file_name(graph_name(Layer::Chunk, "wide"));
    fs::copy(file, garden.file()).expect("the file can be copied");
    let mut index = garden.graph()?;
    garden.check(&index)?;
    index.save(&garden.writer)?;
    garden.plant()?;
    garden.check(&garden.graph()?)
}

#[test]
fn a_stale_graph_is_brought_up_to_date() -> Result<()> {
    let mut garden = Garden::new(20)?;
    garden.graph()?.save(&garden.writer)?;
    garden.plant()?;
    let mut index = garden.graph()?;
    assert!(index.unsaved);
    garden.check(&index)?;
    index.save(&garden.writer)?;

    // Replaced documents: first few, whose vectors are skipped, then more than a quarter, after which the graph is
    // rebuilt.
    for (replaced, rebuilt) in [(0..2, false), (2..9, true)] {
        for document in replaced {
            let path = format!("document {document}");
            garden.writer.put_document(&NewDocument {
                path: &path,
                kind: "text",
                title: "",
                text: "new",
                passages: &[],
            })?;
        }
        let mut index = garden.graph()?;
        assert_eq!(index.unsaved, rebuilt);
        garden.check(&index)?;
        index.save(&garden.writer)?;
    }
    Ok(())
}

#[test]
fn removing_a_document_removes_saved_graphs() -> Result<()> {
    let mut garden = Garden::new(4)?;
    garden.graph()?.save(&garden.writer)?;
    assert!(garden.file().exists());
    let first = garden.writer.documents()?[0].id;
    garden.writer.remove_document(first)?;
    assert!(!garden.file().exists());
    garden.check(&garden.graph()?)
}

#[test]
fn many_threads_can_search_one_graph() -> Result<()> {
    let garden = Garden::new(20)?;
    let index = garden.graph()?;
    let expected = index.search(&vector(5), 3)?;
    let search = || (0..50).all(|_| index.search(&vector(5), 3).is_ok_and(|hits| hits == expected));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(search)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap_or(false)));
    });
    Ok(())
}

/// pgvector's index returns deleted vectors, which are left out only afterwards.
#[test]
fn an_approximate_search_that_finds_too_few_vectors_is_repeated_for_more() -> Result<()> {
    let passages: HashMap<u64, PassageId> = (0..40).map(|key: u32| (key.into(), PassageId(key.into()))).collect();
    let check = |extent, k, known: &HashMap<u64, PassageId>, hits: usize, asked: &[usize]| -> Result<()> {
        let requests = RefCell::new(Vec::new());
        let search = |wanted: usize| -> Result<Vec<(u64, f32)>> {
            requests.borrow_mut().push(wanted);
            let found = if wanted > 10 { wanted.min(40) } else { 1 };
            Ok((0..40).take(found).map(|key: u8| (key.into(), -f32::from(key))).collect())
        };
        let found = walk(known, k, extent, search)?;
        assert_eq!(ids(&found), (0..40).take(hits).map(PassageId).collect::<Vec<_>>());
        assert_eq!(*requests.borrow(), asked);
        Ok(())
    };
    check(Extent::exact_above(10), 4, &passages, 4, &[4, 8, 16])?;
    check(Extent::all(40), 4, &passages, 4, &[4, 8, 16])?;
    check(Extent::all(40), 100, &passages, 40, &[40])?;
    // It ends once every known vector is found, or with an exact scan that finds too few.
    check(Extent::exact_above(10), 100, &passages, 40, &[100])?;
    let mut more = passages.clone();
    more.insert(99, PassageId(99));
    check(Extent::exact_above(10), 50, &more, 40, &[50])
}

#[test]
fn a_unit_vector_has_length_one() {
    let check = |vector: &[f32]| {
        let length =
            unit(vector, vector.len()).map(|unit| unit.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>());
        assert!(length.is_ok_and(|length| (length - 1.0).abs() < 1e-6), "{vector:?}");
    };
    check(&[3.0, 4.0]);
    check(&[f32::MAX, f32::MAX]);
    check(&[f32::MIN_POSITIVE, 0.0]);
    check(&[-1e-30; 100]);
}

#[test]
fn a_reader_opens_the_graph_that_a_writer_saved() -> Result<()> {
    let garden = Garden::new(5)?;
    garden.graph()?.save(&garden.writer)?;
    let Garden { folder, writer, .. } = garden;
    drop(writer);
    let corpus: Corpus = Corpora::new(folder.path()).open("garden")?;
    let index = DenseIndex::open_with(&corpus, Layer::Chunk, "tiny", 0)?;
    assert!(!index.unsaved);
    assert_eq!(index.search(&vector(0), 1)?[0].passage, corpus.passages(Layer::Chunk)?[0].id);
    Ok(())
}
