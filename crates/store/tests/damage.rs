//! Invalid or damaged files give a typed error or the correct result, never a panic.

use std::fs;
use std::path::Path;

use random::Random;
use rusqlite::Connection;
use store::{
    Bm25, Bond, Corpus, DenseIndex, Digest, DocId, Error, IndexText, Layer, LexicalIndex, NewDerived, PassageId,
    Result, Writer,
};

use test_support::fuzz;

use crate::scratch::{Outcome, Scratch, author, put_lines, whole};

const TRIES: u64 = 200;

/// Stores documents with notes and vectors.
fn fill(writer: &mut Writer) -> Result<()> {
    for document in 0..6 {
        let line = |line: usize| format!("line {line} of {document}: {}\n", "word ".repeat(line * 7));
        let text = (0..20).map(line).collect::<Vec<_>>().concat();
        put_lines(writer, &format!("document {document}"), &text)?;
    }
    for page in writer.passages(Layer::Page)? {
        writer.put_notes(page.id, &[("abstract", "words"), ("header", "a line")], &author())?;
        writer.put_vectors("tiny", &[(page.id, whole(&page, &[1.0; 64]))])?;
        let text = format!("derived from page {}", page.id);
        let (key, author) = (Digest::of(&[&text]), author());
        let summary =
            NewDerived { kind: "summary", key, text: &text, sources: &[page.id], bond: Bond::All, author: &author };
        let id = writer.put_derived(&[summary])?[0];
        writer.put_derived_vectors("small", &[(id, vec![2.0; 4])])?;
    }
    Ok(())
}

/// Calls all reading operations of a corpus.
fn read_all(corpus: &Corpus) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for document in corpus.documents()? {
        texts.push(corpus.document_text(document.id)?);
    }
    for page in corpus.passages(Layer::Page)? {
        corpus.passage_text(page.id)?;
        corpus.notes(page.id)?;
        corpus.vectors("tiny", page.id)?;
    }
    corpus.notes_named(Layer::Page, "abstract")?;
    corpus.pending(Layer::Page, "abstract")?;
    corpus.without_vectors(Layer::Page, "tiny")?;
    LexicalIndex::open(corpus, Layer::Page, IndexText::NoteAndContent("header"), Bm25::default())?.search("line", 5);
    DenseIndex::open(corpus, Layer::Page, "tiny")?.search(&[1.0; 64], 5)?;
    corpus.derived("summary")?;
    corpus.derived_vectors("summary", "small")?;
    corpus.counts()?;
    corpus.digest()?;
    corpus.verify()?;
    Ok(texts)
}

/// Calls writing operations of a corpus.
fn write_all(writer: &mut Writer) -> Result<()> {
    for document in writer.documents()? {
        put_lines(writer, &document.path, "another text\n")?;
    }
    for page in writer.passages(Layer::Page)? {
        writer.put_notes(page.id, &[("abstract", "other words")], &author())?;
    }
    writer.documents()?.into_iter().try_for_each(|document| writer.remove_document(document.id))
}

#[test]
fn a_damaged_database_is_reported_or_right() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    fill(&mut writer)?;
    drop(writer);
    let texts = read_all(&scratch.corpora.open("scratch")?)?;
    let path = scratch.file("memory.sqlite");
    let good = fs::read(&path)?;
    let (mut reported, mut damaged) = (0, Vec::new());
    let mut tries = fuzz::rounds(TRIES);
    for attempt in &mut tries {
        damaged.clone_from(&good);
        let mut random = Random::new(attempt);
        match attempt % 4 {
            0 => damaged.truncate(random.below(good.len())),
            1 => damaged[random.below(good.len())..].iter_mut().take(4096).for_each(|byte| *byte = 0),
            _ => damaged[random.below(good.len())] ^= 1 << (attempt % 8),
        }
        fs::write(&path, &damaged)?;
        match scratch.corpora.open("scratch").and_then(|corpus| read_all(&corpus)) {
            Ok(read) => assert_eq!(read, texts, "attempt {attempt} gave other texts"),
            Err(Error::Damaged { .. } | Error::NotACorpus { .. }) => reported += 1,
            Err(other) => panic!("attempt {attempt} was misjudged: {other:?}"),
        }
        let _any_but_a_panic = scratch.corpora.open_writer("scratch").and_then(|mut writer| write_all(&mut writer));
        for log in ["memory.sqlite-wal", "memory.sqlite-shm"] {
            let _missing = fs::remove_file(scratch.file(log));
        }
    }
    let tries = tries.done();
    println!("{reported} of {tries} damages were reported, the others changed nothing that was read");
    assert!(reported > tries / 4);
    Ok(())
}

#[test]
fn a_flipped_bit_in_a_text_vector_or_schema_is_found() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    fill(&mut writer)?;
    drop(writer);
    let path = scratch.file("memory.sqlite");
    let good = fs::read(&path)?;
    let check = |pattern: &[u8]| -> Outcome {
        let place =
            good.windows(pattern.len()).position(|window| window == pattern).ok_or("the pattern is in the file")?;
        let mut bad = good.clone();
        bad[place + pattern.len() / 2] ^= 1;
        fs::write(&path, bad)?;
        let found = scratch.corpora.open("scratch").and_then(|corpus| corpus.verify());
        assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
        Ok(())
    };
    check(b"line 5 of 3: word")?;
    check(b"\n    text TEXT")?;
    check(&[0.125_f32.to_le_bytes(); 16].concat())?;
    check(&[0.5_f32.to_le_bytes(); 4].concat())
}

/// Writes `id` into the second row of a table, whose ids are 1, 2, ..., without moving the row.
fn misplace(database: &Path, table: &str, id: u8) -> Outcome {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    let root: u32 = Connection::open(database)?.query_row(sql, [table], |row| row.get(0))?;
    let mut file = fs::read(database)?;
    let size = usize::from(u16::from_be_bytes([file[16], file[17]]));
    let page = &mut file[size * (usize::try_from(root)? - 1)..][..size];
    assert_eq!(page[0], 13, "all rows are in one leaf page");
    let cell = usize::from(u16::from_be_bytes([page[10], page[11]]));
    let length = if page[cell] < 128 { 1 } else { 2 };
    assert_eq!(page[cell + length], 2, "the id of the row");
    page[cell + length] = id;
    Ok(fs::write(database, file)?)
}

#[test]
fn a_row_that_is_listed_and_not_found_is_damage() -> Outcome {
    for table in ["document", "passage"] {
        let scratch = Scratch::new();
        let mut writer = scratch.writer();
        for document in 0..6 {
            put_lines(&mut writer, &format!("document {document}"), "a line\n")?;
        }
        drop(writer);
        misplace(&scratch.file("memory.sqlite"), table, 100)?;
        let corpus = scratch.corpora.open("scratch")?;
        let found = match table {
            "document" => corpus.documents().and_then(|all| corpus.document_text(all[1].id)),
            _ => corpus.passages(Layer::Page).and_then(|all| corpus.passage_text(all[1].id)),
        };
        assert!(matches!(found, Err(Error::Damaged { .. })), "{table}: {found:?}");
        assert!(matches!(corpus.document(DocId(7)), Err(Error::UnknownDocument(DocId(7)))));
        assert!(matches!(corpus.passage(PassageId(70)), Err(Error::UnknownPassage(PassageId(70)))));
    }
    Ok(())
}

#[test]
fn other_files_are_refused_by_name() -> Outcome {
    let check = |make: &dyn Fn(&Path) -> Outcome, expected: &dyn Fn(&Error) -> bool| -> Outcome {
        let scratch = Scratch::new();
        let mut writer = scratch.writer();
        fill(&mut writer)?;
        drop(writer);
        make(&scratch.file("memory.sqlite"))?;
        let before = fs::read(scratch.file("memory.sqlite"))?;
        for outcome in [scratch.corpora.open("scratch").map(drop), scratch.corpora.open_writer("scratch").map(drop)] {
            assert!(outcome.as_ref().is_err_and(expected), "{outcome:?}");
        }
        assert!(scratch.corpora.list()?[0].counts.as_ref().is_err_and(expected));
        assert_eq!(fs::read(scratch.file("memory.sqlite"))?, before, "a refused file is left alone");
        Ok(())
    };
    let not_a_corpus = |error: &Error| matches!(error, Error::NotACorpus { .. });
    check(&|path| Ok(fs::write(path, "dear diary, ".repeat(1000))?), &not_a_corpus)?;
    check(&|path| Ok(fs::write(path, "")?), &not_a_corpus)?;
    check(
        &|path| {
            fs::remove_file(path)?;
            Ok(Connection::open(path)?.execute_batch("CREATE TABLE other (x); PRAGMA user_version = 1;")?)
        },
        &not_a_corpus,
    )?;
    check(
        &|path| Ok(Connection::open(path)?.execute_batch("PRAGMA user_version = 4; PRAGMA wal_checkpoint(TRUNCATE);")?),
        &|error| matches!(error, Error::NewerSchema { found: 4, known: 3, .. }),
    )
}
