//! Corpora that processes with different data folders share through a real PostgreSQL server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use store::{
    Bm25, Bond, Corpora, Corpus, DenseIndex, Digest, DocId, Error, Hit, IndexText, Layer, LexicalIndex, Meta,
    NewDerived, NewDocument, NewPassage, PassageId, Postgres, Repaired, Writer, fuse,
};
use tempfile::TempDir;
use test_support::postgres::Server;

use crate::repair::flip;
use crate::scratch::{Outcome, author, lines, put_lines, whole};
use crate::upgrade::{SCHEMAS, fixture, is_blessed};

/// One machine: a data folder and a separate connection.
struct Machine {
    folder: TempDir,
    corpora: Corpora,
}

impl Machine {
    fn new(server: &Server) -> Machine {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let corpora = sharing(folder.path(), &server.url());
        Machine { folder, corpora }
    }

    /// The same corpora without PostgreSQL.
    fn alone(&self) -> Corpora {
        Corpora::new(self.folder.path())
    }

    fn corpus(&self) -> PathBuf {
        self.folder.path().join("corpora/scratch")
    }
}

fn sharing(folder: &Path, url: &str) -> Corpora {
    Corpora::new(folder).with_vectors(Some(Postgres::at(url).expect("the address of a test's own server")))
}

/// Stores a document with notes, vectors, and derived texts.
fn fill(writer: &mut Writer, path: &str, text: &str) -> store::Result<DocId> {
    let passages = [lines(Layer::Page, text), lines(Layer::Turn, text)].concat();
    let document = NewDocument { path, kind: "text", title: path, text, passages: &passages };
    let (document, _) = writer.put_document(&document)?;
    let author = author();
    for page in writer.passages_of(document, Layer::Page)? {
        let content = writer.passage_text(page.id)?;
        writer.put_notes(page.id, &[("abstract", &content[..3]), ("header", "a line")], &author)?;
        let seed = f32::from(content.bytes().map(u16::from).sum::<u16>());
        writer.put_vectors("tiny", &[(page.id, whole(&page, &[1.0, seed.sin(), seed.cos()]))])?;
        let key = Digest::of(&[&content]);
        let summary =
            NewDerived { kind: "summary", key, text: &content, sources: &[page.id], bond: Bond::All, author: &author };
        let id = writer.put_derived(&[summary])?[0];
        writer.put_derived_vectors("small", &[(id, vec![seed, 1.0])])?;
    }
    Ok(document)
}

type Found = (Vec<Hit>, Vec<Hit>, Vec<Hit>);

/// The results of searches.
fn search(corpus: &Corpus) -> store::Result<Found> {
    let text = IndexText::NoteAndContent("header");
    let words = LexicalIndex::open(corpus, Layer::Page, text, Bm25::default())?.search("lamp line two", 5);
    let meaning = DenseIndex::open(corpus, Layer::Page, "tiny")?.search(&[0.5, 0.2, 0.1], 5)?;
    let both = fuse::rrf(&[words.clone(), meaning.clone()], fuse::RRF_K);
    Ok((words, meaning, both))
}

/// All readable content of a corpus, ids and times included.
fn content(corpus: &Corpus) -> store::Result<String> {
    corpus.verify()?;
    let mut said = vec![format!("{:?} {}", corpus.counts()?, corpus.digest()?)];
    for document in corpus.documents()? {
        said.push(format!("{document:?} {}", corpus.document_text(document.id)?));
    }
    for passage in [corpus.passages(Layer::Page)?, corpus.passages(Layer::Turn)?].concat() {
        said.push(format!("{passage:?} {}", corpus.passage_text(passage.id)?));
        said.push(format!("{:?} {:?}", corpus.notes(passage.id)?, corpus.vectors("tiny", passage.id)?));
    }
    said.push(format!("{:?} {:?}", corpus.derived("summary")?, corpus.derived_vectors("summary", "small")?));
    Ok(said.join("\n"))
}

/// Checks that two machines have the same content, and returns it.
fn same(one: &Machine, other: &Machine) -> store::Result<String> {
    let (one, other) = (one.corpora.open("scratch")?, other.corpora.open("scratch")?);
    let (seen, also) = (content(&one)?, content(&other)?);
    assert_eq!(seen, also);
    assert_eq!(search(&one)?, search(&other)?);
    Ok(seen)
}

fn files_with(folder: &Path, words: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let has =
        |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.windows(words.len()).any(|at| at == words.as_bytes()));
    files.filter(has).collect()
}

#[test]
fn what_one_machine_remembers_another_finds() -> Outcome {
    let Some(server) = Server::start("store-shared") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    assert!(a.corpora.list()?.is_empty(), "an empty database has no corpora");
    let mut writer = a.corpora.create("scratch")?;
    // Longer than one batch.
    let long = "and so on, ".repeat(500_000);
    let lamp = fill(&mut writer, "lamp", "the lamp is out\nline two\n")?;
    fill(&mut writer, "long", &format!("the baker\n{long}\n"))?;
    let found = search(&writer)?;
    assert_eq!((found.0.len(), found.1.len()), (4, 4));
    drop(writer);

    let listed = b.corpora.list()?;
    assert_eq!((listed.len(), listed[0].name.to_string(), listed[0].bytes), (1, "scratch".to_owned(), 0));
    assert_eq!(listed[0].counts.as_ref().ok(), Some(&a.corpora.open("scratch")?.counts()?));
    assert_eq!(search(&b.corpora.open("scratch")?)?, found);
    assert_eq!(server.vectors(), 4, "both search one index");
    let before = same(&a, &b)?;
    assert!(before.len() > 5_000_000);
    assert!(matches!(b.corpora.create("scratch"), Err(Error::CorpusExists { .. })));

    // A reader keeps its snapshot; the next reader sees all changes.
    let early = a.corpora.open("scratch")?;
    let mut writer = b.corpora.open_writer("scratch")?;
    fill(&mut writer, "tea", "tea at two\nline two of the tea\n")?;
    fill(&mut writer, "lamp", "the lamp is lit\nline two\n")?;
    assert!(matches!(writer.document(lamp), Err(Error::UnknownDocument(_))), "it was replaced");
    drop(writer);
    assert_eq!(content(&early)?, before);
    assert_eq!(search(&early)?, found, "whose vectors were kept for it");
    drop(early);
    let after = same(&a, &b)?;
    assert!(after.contains("the lamp is lit") && !after.contains("the lamp is out"));
    assert_eq!(a.corpora.open("scratch")?.counts()?.documents, 3);

    // The other direction, with a machine that joins only now.
    fill(&mut a.corpora.open_writer("scratch")?, "milk", "milk at three\n")?;
    same(&b, &Machine::new(&server))?;
    Ok(())
}

#[test]
fn what_is_removed_is_gone_everywhere() -> Outcome {
    let Some(server) = Server::start("store-removed") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    let mut writer = a.corpora.create("scratch")?;
    let (secret, kept) =
        (fill(&mut writer, "secret", "a secret line\n")?, fill(&mut writer, "kept", "another line\n")?);
    let newest = fill(&mut writer, "newest", "a newer line\n")?;
    drop(writer);
    search(&b.corpora.open("scratch")?)?;
    assert_eq!(server.vectors(), 3);
    let cached = b.alone().open_writer("scratch")?;
    cached.keep("words", &Digest::of(&["words"]), b"a secret")?;
    drop(cached);

    // There must be no readers meanwhile, on any machine.
    let reader = b.corpora.open("scratch")?;
    let mut writer = a.corpora.open_writer("scratch")?;
    assert!(matches!(writer.remove_document(secret), Err(Error::CorpusBusy { .. })));
    drop(reader);
    writer.remove_document(secret)?;
    writer.remove_document(newest)?;
    assert_eq!(server.vectors(), 0);
    let secrets = "SELECT count(*) FROM memlocal_row WHERE position('secret'::bytea in row) > 0";
    assert_eq!(server.number(secrets), 0, "and no row has a word of it");
    drop(writer);
    let corpus = b.corpora.open("scratch")?;
    assert_eq!(corpus.documents()?.iter().map(|document| document.id).collect::<Vec<_>>(), [kept]);
    assert_eq!(search(&corpus)?.1.len(), 1);
    drop(corpus);
    assert_eq!(files_with(&b.corpus(), "a secret"), [] as [PathBuf; 0]);
    assert!(!b.corpus().join("cache").exists());
    same(&a, &b)?;
    let next = put_lines(&mut b.corpora.open_writer("scratch")?, "next", "a line\n")?;
    assert!(next > newest, "ids are never used again, wherever they were given away");

    a.corpora.remove("scratch")?;
    assert_eq!(server.number("SELECT count(*) FROM memlocal_row"), 0);
    assert_eq!(server.number("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'memlocal_vectors_%'"), 0);
    assert!(b.corpora.list()?.is_empty(), "a copy of what was removed is no corpus");
    assert!(matches!(b.corpora.open("scratch"), Err(Error::UnknownCorpus { .. })));
    assert_eq!(files_with(&b.corpus(), "a line"), [] as [PathBuf; 0]);
    put_lines(&mut b.corpora.create("scratch")?, "new", "another corpus\n")?;
    assert_eq!(a.corpora.open("scratch")?.counts()?.documents, 1, "the name can be used again");
    Ok(())
}

#[test]
fn one_writes_on_all_machines() -> Outcome {
    let Some(server) = Server::start("store-writers") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    let mut writer = a.corpora.create("scratch")?;
    put_lines(&mut writer, "a", "one\n")?;
    for refused in [b.corpora.open_writer("scratch").map(drop), b.corpora.remove("scratch")] {
        let Err(Error::CorpusBusy { holder: Some(holder), .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((holder.pid, holder.machine.as_deref()), (std::process::id(), Some("127.0.0.1")));
        let said = Error::CorpusBusy { name: "scratch".into(), holder: Some(holder) }.to_string();
        assert!(said.starts_with("the corpus `scratch` is in use by process ") && said.ends_with(" on 127.0.0.1"));
    }
    let reader = b.corpora.open("scratch")?;
    put_lines(&mut writer, "b", "two\n")?;
    assert_eq!((reader.counts()?.documents, b.corpora.open("scratch")?.counts()?.documents), (1, 2));
    drop(writer);
    put_lines(&mut b.corpora.open_writer("scratch")?, "c", "three\n")?;
    assert_eq!(a.corpora.open("scratch")?.counts()?.documents, 3);

    // Holders of keys have separate corpora.
    let ann = sharing(b.folder.path().join("ann").as_path(), &server.url()).of_holder("ann");
    assert!(ann.list()?.is_empty() && matches!(ann.open("scratch"), Err(Error::UnknownCorpus { .. })));
    ann.create("scratch")?;
    assert_eq!((ann.open("scratch")?.counts()?.documents, a.corpora.open("scratch")?.counts()?.documents), (0, 3));
    Ok(())
}

#[test]
fn a_corpus_that_is_only_here_is_put_there_whole() -> Outcome {
    let Some(server) = Server::start("store-uploaded") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    fill(&mut a.alone().create("scratch")?, "lamp", "the lamp is out\nline two\n")?;
    let before = content(&a.alone().open("scratch")?)?;
    assert_eq!(content(&a.corpora.open("scratch")?)?, before, "a reader puts it there too");
    assert_eq!(same(&a, &b)?, before);
    // Changes made without PostgreSQL are sent later, as long as no other client has made any.
    fill(&mut b.alone().open_writer("scratch")?, "tea", "tea at two\n")?;
    assert!(!content(&a.corpora.open("scratch")?)?.contains("tea"));
    assert!(content(&b.corpora.open("scratch")?)?.contains("tea"));
    same(&a, &b)?;
    // A complete corpus is sent again if the database has lost everything.
    server.client().batch_execute("DROP TABLE memlocal_row, memlocal_change, memlocal_corpus")?;
    let lost = content(&b.corpora.open("scratch")?)?;
    assert_eq!(content(&Machine::new(&server).corpora.open("scratch")?)?, lost);
    Ok(())
}

#[test]
fn copies_with_another_history_are_refused() -> Outcome {
    let Some(server) = Server::start("store-pasts") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    let refused = |machine: &Machine| -> Outcome {
        let before = content(&machine.alone().open("scratch")?)?;
        for outcome in [
            machine.corpora.open("scratch").map(drop),
            machine.corpora.open_writer("scratch").map(drop),
            machine.corpora.remove("scratch"),
        ] {
            assert!(matches!(outcome, Err(Error::Differs { .. })), "{outcome:?}");
        }
        assert!(matches!(machine.corpora.list()?[0].counts, Err(Error::Differs { .. })));
        assert_eq!(content(&machine.alone().open("scratch")?)?, before, "nothing was merged");
        Ok(())
    };
    // Two different corpora of one name.
    put_lines(&mut a.corpora.create("scratch")?, "a", "one\n")?;
    put_lines(&mut b.alone().create("scratch")?, "b", "two\n")?;
    refused(&b)?;
    b.alone().remove("scratch")?;
    same(&a, &b)?;
    // Both copies have changed.
    put_lines(&mut b.alone().open_writer("scratch")?, "b", "two\n")?;
    put_lines(&mut a.corpora.open_writer("scratch")?, "a", "another\n")?;
    refused(&b)?;
    b.alone().remove("scratch")?;
    same(&a, &b)?;
    // A database that was restored to an earlier state and has had new changes since.
    server.client().batch_execute("DELETE FROM memlocal_change WHERE version = 3")?;
    refused(&b)?;
    let other =
        "INSERT INTO memlocal_change SELECT corpus, version + 1, sha256(digest) FROM memlocal_change WHERE version = 2";
    server.client().batch_execute(other)?;
    refused(&b)?;
    // A corpus created by a newer program.
    server.client().batch_execute("UPDATE memlocal_corpus SET schema = 4")?;
    let newer = Machine::new(&server).corpora.open("scratch");
    assert!(matches!(newer, Err(Error::OtherSchema { found: 4, known: 3, .. })), "{newer:?}");
    Ok(())
}

/// The copy is restored to its earlier state: as if its process had been stopped after PostgreSQL had committed the
/// change and before the copy had.
#[test]
fn a_change_that_only_postgresql_has_comes_back() -> Outcome {
    let Some(server) = Server::start("store-halfway") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    let set_back = |change: &dyn Fn() -> Outcome| -> Outcome {
        let saved = fs::read(a.corpus().join("memory.sqlite"))?;
        change()?;
        let log = fs::metadata(a.corpus().join("memory.sqlite-wal")).map_or(0, |log| log.len());
        assert_eq!(log, 0, "it would bring the change back");
        Ok(fs::write(a.corpus().join("memory.sqlite"), saved)?)
    };
    put_lines(&mut a.corpora.create("scratch")?, "a", "one\n")?;
    set_back(&|| Ok(fill(&mut a.corpora.open_writer("scratch")?, "b", "two\nthree\n").map(drop)?))?;
    assert_eq!(a.alone().open("scratch")?.counts()?.documents, 1);
    assert_eq!(a.corpora.open_writer("scratch")?.counts()?.documents, 2);
    same(&a, &b)?;
    // A change that was made without PostgreSQL and had just been sent.
    fill(&mut a.alone().open_writer("scratch")?, "c", "four\n")?;
    set_back(&|| Ok(a.corpora.open("scratch").map(drop)?))?;
    put_lines(&mut b.corpora.open_writer("scratch")?, "d", "five\n")?;
    assert_eq!(a.corpora.open("scratch")?.counts()?.documents, 4);
    same(&a, &b)?;
    // A change made after that is a separate change.
    set_back(&|| Ok(put_lines(&mut a.corpora.open_writer("scratch")?, "e", "six\n").map(drop)?))?;
    put_lines(&mut a.alone().open_writer("scratch")?, "f", "seven\n")?;
    assert!(matches!(a.corpora.open("scratch"), Err(Error::Differs { .. })));
    Ok(())
}

#[test]
fn a_connection_that_ends_leaves_both_sides_whole() -> Outcome {
    let Some(server) = Server::start("store-away") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    let mut writer = a.corpora.create("scratch")?;
    put_lines(&mut writer, "a", "one\n")?;
    // The writer's connection only.
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1";
    assert_eq!(server.number(ended), 1);
    for _ in 0..2 {
        let refused = put_lines(&mut writer, "b", "two\n");
        assert!(matches!(&refused, Err(Error::Postgres { .. })), "{refused:?}");
        assert_eq!(writer.counts()?.documents, 1, "nothing was changed");
    }
    // The first writer has lost its lock, so another may write.
    put_lines(&mut b.corpora.open_writer("scratch")?, "c", "three\n")?;
    assert!(put_lines(&mut writer, "b", "two\n").is_err());
    drop(writer);
    same(&a, &b)?;

    for round in 0..3_u32 {
        let mut writer = a.corpora.open_writer("scratch")?;
        let failed = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(150 + u64::from(round) * 37));
                server.end();
            });
            (0..).find_map(|number| {
                fill(&mut writer, &format!("{round}.{number}"), "the lamp\nof the lighthouse\n").err()
            })
        });
        let said = failed.map(|error| error.to_string()).unwrap_or_default();
        assert!(said.starts_with("PostgreSQL at 127.0.0.1 failed: "), "{said}");
        let kept = content(&writer)?;
        drop(writer);
        assert!(matches!(a.corpora.open("scratch"), Err(Error::Postgres { .. })), "no reader bypasses it");
        assert!(matches!(a.corpora.list(), Err(Error::Postgres { .. })));
        assert_eq!(content(&a.alone().open("scratch")?)?, kept);
        assert!(server.begin());
        // One change more, if the connection was lost while it was being committed.
        same(&a, &b)?;
    }
    Ok(())
}

#[test]
fn a_damaged_copy_is_kept_and_fetched_anew() -> Outcome {
    let Some(server) = Server::start("store-repair") else { return Ok(()) };
    let (a, b) = (Machine::new(&server), Machine::new(&server));
    let mut writer = a.corpora.create("scratch")?;
    fill(&mut writer, "lamp", "the lamp is out\nline two\n")?;
    let tea = fill(&mut writer, "tea", "tea at two\n")?;
    drop(writer);
    a.corpora.set_title("scratch", "A title")?;
    let mut unsent = a.alone().open_writer("scratch")?;
    fill(&mut unsent, "milk", "milk at three\n")?;
    unsent.remove_document(tea)?;
    let adapter = unsent.trained().join("weights");
    drop(unsent);
    let keep =
        || fs::create_dir_all(adapter.parent().ok_or("it is in a folder")?).map_err(Box::<dyn std::error::Error>::from);
    keep()?;
    fs::write(&adapter, "words of milk")?;
    let file = a.corpus().join("memory.sqlite");
    flip(&file, b"is out\nline two")?;
    let damaged = fs::read(&file)?;

    let writing = b.corpora.open_writer("scratch")?;
    assert!(matches!(a.corpora.repair("scratch"), Err(Error::CorpusBusy { .. })));
    drop(writing);
    server.end();
    assert!(matches!(a.corpora.repair("scratch"), Err(Error::Postgres { .. })));
    assert!(fs::read(&file)? == damaged && adapter.exists(), "nothing was changed");
    assert!(server.begin());
    let unsent = Some(vec!["tea".to_owned(), "milk".to_owned()]);
    assert_eq!(a.corpora.repair("scratch")?, Repaired::Fetched { unsent });
    assert!(fs::read(a.corpus().join("memory.damaged.sqlite"))? == damaged);
    assert!(!adapter.exists(), "it was trained on a document that is not there");
    assert_eq!(a.corpora.open("scratch")?.title(), "A title");
    assert!(!same(&a, &b)?.contains("milk"));

    // Nothing is unsent, so what was derived is right.
    keep()?;
    fs::write(&adapter, "words of a lamp")?;
    flip(&file, b"is out\nline two")?;
    assert_eq!(a.corpora.repair("scratch")?, Repaired::Fetched { unsent: Some(Vec::new()) });
    assert!(adapter.exists());
    same(&a, &b)?;

    // Another corpus of the name is not the copy of this one.
    b.alone().remove("scratch")?;
    put_lines(&mut b.alone().create("scratch")?, "b", "another line\n")?;
    flip(&b.corpus().join("memory.sqlite"), b"another line")?;
    assert!(matches!(b.corpora.repair("scratch")?, Repaired::Without(_)));
    assert!(matches!(b.corpora.open("scratch"), Err(Error::Differs { .. })));
    Ok(())
}

const DIMS: usize = 8;

/// Creates a corpus of documents in which every letter is a page with a vector.
fn shelf(corpora: &Corpora, documents: usize, pages: usize) -> store::Result<()> {
    let mut writer = corpora.create("scratch")?;
    for number in 0..documents {
        let page = |start| NewPassage { layer: Layer::Page, bytes: start..start + 1, tokens: 1, meta: Meta::default() };
        let cut: Vec<NewPassage> = (0..pages).map(page).collect();
        let (path, text) = (format!("document {number}"), "x".repeat(pages));
        let new = NewDocument { path: &path, kind: "text", title: "", text: &text, passages: &cut };
        let (document, _) = writer.put_document(&new)?;
        let embedded = writer.passages_of(document, Layer::Page)?.into_iter().map(|page| {
            let vector = vector(number * pages + page.ordinal as usize);
            (page.id, whole(&page, &vector))
        });
        writer.put_vectors("tiny", &embedded.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Reproducible pseudo-random numbers between -1 and 1 (the constants of Knuth's MMIX).
#[allow(clippy::cast_precision_loss)] // 24 bits
fn vector(seed: usize) -> Vec<f32> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..DIMS + 4).map(|_| next()).skip(4).collect()
}

fn index(corpus: &Corpus) -> store::Result<DenseIndex> {
    DenseIndex::open(corpus, Layer::Page, "tiny")
}

fn ids(hits: &[Hit]) -> Vec<PassageId> {
    hits.iter().map(|hit| hit.passage).collect()
}

#[test]
fn a_shared_index_finds_what_each_process_finds_by_itself() -> Outcome {
    let Some(server) = Server::start("store-index") else { return Ok(()) };
    let machine = Machine::new(&server);
    shelf(&machine.alone(), 12, 10)?;
    let alone = machine.alone().open("scratch")?;
    // As separate processes would: each with its own connection, all concurrently.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let corpus = sharing(machine.folder.path(), &server.url()).open("scratch").unwrap();
                assert_eq!(index(&corpus).unwrap().search(&vector(3), 5).unwrap().len(), 5);
            });
        }
    });
    assert_eq!(server.vectors(), 120);
    let (one, other) = (index(&alone)?, index(&machine.corpora.open("scratch")?)?);
    for seed in 0..20 {
        let query = vector(seed * 7 + 1_000_000);
        let (want, found) = (one.search(&query, 5)?, other.search(&query, 5)?);
        assert_eq!(ids(&found), ids(&want), "query {seed}");
        assert!(found.iter().zip(&want).all(|(found, want)| (found.score - want.score).abs() < 1e-5));
        let among: BTreeSet<PassageId> = alone.passages(Layer::Page)?.iter().step_by(seed + 2).map(|p| p.id).collect();
        let (want, found) = (one.search_among(&query, 5, &among)?, other.search_among(&query, 5, &among)?);
        assert_eq!(ids(&found), ids(&want), "query {seed}");
    }
    drop((alone, one, other));

    // A removed document's vectors are deleted everywhere; the others are restored when they are needed.
    let mut writer = machine.corpora.open_writer("scratch")?;
    let first = writer.documents()?[0].id;
    let gone = writer.passages_of(first, Layer::Page)?[0].id;
    writer.remove_document(first)?;
    assert_eq!(server.vectors(), 0);
    let found = index(&writer)?.search(&vector(0), 200)?;
    assert_eq!((found.len(), server.vectors()), (110, 110));
    assert!(found.iter().all(|hit| hit.passage != gone));
    // A replaced document's vectors are deleted too, if there are no readers.
    put_lines(&mut writer, "document 1", "another text\n")?;
    assert_eq!(server.vectors(), 100);
    Ok(())
}

/// More vectors than are scanned exactly.
#[test]
fn a_large_index_is_searched_by_a_graph() -> Outcome {
    let Some(server) = Server::start("store-large") else { return Ok(()) };
    let machine = Machine::new(&server);
    shelf(&machine.alone(), 21, 1000)?;
    let shared = machine.corpora.open("scratch")?;
    let dense = index(&shared)?;
    let all: BTreeSet<PassageId> = shared.passages(Layer::Page)?.iter().map(|passage| passage.id).collect();
    let mut same = 0;
    for seed in 0..20 {
        let query = vector(seed * 7 + 1_000_000);
        let exact = ids(&dense.search_among(&query, 10, &all)?);
        same += ids(&dense.search(&query, 10)?).iter().filter(|id| exact.contains(id)).count();
    }
    assert!(same >= 190, "{same} of 200 are found");
    assert_eq!(server.number("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'"), 1);
    Ok(())
}

const FOLDER: &str = "MEMLOCAL_STORE_SHARED";
const URL: &str = "MEMLOCAL_STORE_SHARED_URL";
const DOCUMENTS: usize = 6;
const KILLS: u64 = 12;

#[test]
fn killed_writers_on_two_machines_leave_the_same() -> Outcome {
    if let (Some(folder), Ok(url)) = (std::env::var_os(FOLDER), std::env::var(URL)) {
        let corpora = sharing(Path::new(&folder), &url);
        let mut writer = corpora.open_writer("scratch")?;
        for document in 0.. {
            fill(&mut writer, &format!("document {}", document % DOCUMENTS), &format!("{document}: one\ntwo\n"))?;
        }
    }
    let Some(server) = Server::start("store-killed") else { return Ok(()) };
    let machines = [Machine::new(&server), Machine::new(&server)];
    machines[0].corpora.create("scratch")?;
    let mut changes = 0;
    for (kill, machine) in (0..KILLS).zip(machines.iter().cycle()) {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "shared::killed_writers_on_two_machines_leave_the_same"]);
        command.env(FOLDER, machine.folder.path()).env(URL, server.url()).stdout(Stdio::null());
        let mut child = command.spawn()?;
        let newest = || server.number("SELECT max(version) FROM memlocal_change");
        while newest() <= changes && child.try_wait()?.is_none() {
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(kill * 17));
        child.kill()?;
        assert_eq!(child.wait()?.code(), None, "the writer failed by itself");
        // PostgreSQL may take a moment to notice that the connection was closed.
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1";
        while server.number(held) > 0 {
            thread::sleep(Duration::from_millis(5));
        }
        same(&machines[0], &machines[1])?;
        changes = newest();
    }
    same(&machines[0], &Machine::new(&server))?;
    Ok(())
}

/// A server with the shared corpus of a schema that `fixtures/sharedN.sqlite` is a copy of.
fn server_of_schema(schema: i64, name: &str) -> Option<Server> {
    let server = Server::start(name)?;
    let rows = fs::read_to_string(fixture(&format!("shared{schema}.sql"))).expect("the fixture is in the repository");
    server.client().batch_execute(&rows).expect("the rows are those of a server");
    Some(server)
}

/// A machine with the copy of that corpus.
fn machine_of_schema(schema: i64, server: &Server) -> Result<Machine, std::io::Error> {
    let machine = Machine::new(server);
    fs::create_dir_all(machine.corpus())?;
    fs::copy(fixture(&format!("shared{schema}.sqlite")), machine.corpus().join("memory.sqlite"))?;
    Ok(machine)
}

const DIGEST: &str = "fef50fea8d512d3870b1b2d3cc352e16301c1bf8f38fc586fdcac1b1e67550d0";

/// The rows of a server as SQL.
fn dump(server: &Server) -> Result<String, postgres::Error> {
    let tables = [
        ("memlocal_corpus", "number, id, space, name, schema, removed, documents, passages, pending"),
        ("memlocal_change", "corpus, version, digest"),
        ("memlocal_row", "corpus, tab, key, piece, version, row"),
    ];
    let mut lines = Vec::new();
    for (table, columns) in tables {
        let places = vec!["%L"; columns.split(',').count()].join(", ");
        let insert = format!("INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({places});");
        let rows =
            server.client().query(&format!("SELECT format('{insert}', {columns}) FROM {table} ORDER BY 1"), &[])?;
        lines.extend(rows.iter().map(|row| row.get::<_, String>(0)));
    }
    Ok(lines.join("\n"))
}

#[test]
fn there_is_a_shared_fixture_of_this_schema() -> Outcome {
    let schema = SCHEMAS[SCHEMAS.len() - 1];
    let [rows, copy] = ["sql", "sqlite"].map(|kind| fixture(&format!("shared{schema}.{kind}")));
    if is_blessed(&rows) {
        let Some(server) = Server::start("store-fixture") else { return Ok(()) };
        let machine = Machine::new(&server);
        let mut writer = machine.corpora.create("scratch")?;
        fill(&mut writer, "one", "né lamp line\nline two of one\n")?;
        fill(&mut writer, "two", &"another lamp line ≈\n".repeat(3))?;
        writer.back_up(&copy)?;
        // The tables in PostgreSQL are those of schema 2; only their rows differ.
        let earlier = fs::read_to_string(fixture("shared2.sql"))?;
        let tables = earlier.lines().skip(1).take_while(|line| !line.starts_with("INSERT")).collect::<Vec<_>>();
        let head = format!("-- The tables of a shared corpus of schema {schema}; `shared{schema}.sqlite` is its copy.");
        fs::write(&rows, format!("{head}\n{}\n{}\n", tables.join("\n"), dump(&server)?))?;
    }
    assert!(rows.exists() && copy.exists(), "schema {schema} has no shared fixture");
    Ok(())
}

#[test]
fn a_shared_corpus_of_every_schema_is_read_and_upgraded_by_a_writer() -> Outcome {
    for earlier in SCHEMAS {
        let Some(server) = server_of_schema(earlier, &format!("store-schema{earlier}")) else { return Ok(()) };
        let schema = || server.number("SELECT schema FROM memlocal_corpus");
        // One machine has a copy of the earlier schema, the others have none.
        let (old, [new, late]) = (machine_of_schema(earlier, &server)?, [(); 2].map(|()| Machine::new(&server)));
        for machine in [&old, &new] {
            let corpus = machine.corpora.open("scratch")?;
            assert_eq!(corpus.digest()?.to_string(), DIGEST);
            corpus.verify()?;
        }
        assert_eq!(schema(), earlier, "a reader changes nothing");

        let mut writer = new.corpora.open_writer("scratch")?;
        assert_eq!(Some(&schema()), SCHEMAS.last());
        fill(&mut writer, "three", "a line of three\n")?;
        let gone = writer.document_at("one")?.ok_or("it is there")?.id;
        drop(writer);
        same(&old, &new)?;
        old.corpora.open_writer("scratch")?.remove_document(gone)?;
        same(&old, &late)?;
        let seen = same(&new, &late)?;
        assert!(seen.contains("a line of three") && !seen.contains("line two of one"), "{seen}");
    }
    Ok(())
}

#[test]
fn a_copy_of_every_schema_that_was_changed_alone_upgrades_the_shared_corpus() -> Outcome {
    for earlier in SCHEMAS {
        let Some(server) = server_of_schema(earlier, &format!("store-schema{earlier}-alone")) else { return Ok(()) };
        let (old, new) = (machine_of_schema(earlier, &server)?, Machine::new(&server));
        fill(&mut old.alone().open_writer("scratch")?, "three", "a line of three\n")?;
        let seen = same(&old, &new)?;
        assert!(seen.contains("a line of three"), "{seen}");
        assert_eq!(Some(&server.number("SELECT schema FROM memlocal_corpus")), SCHEMAS.last());
    }
    Ok(())
}
