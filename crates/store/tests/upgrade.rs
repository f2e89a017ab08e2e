//! Corpora of every earlier schema open for ever: a reader reads them as they are, a writer upgrades them and keeps a
//! backup.
//!
//! `fixtures/schema2.sqlite` was written by [`fill`] with the last commit whose schema was 2, and is never written again.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::{Bm25, Bond, Corpus, Digest, IndexText, Layer, LexicalIndex, NewDerived, NewDocument, Writer};

use crate::scratch::{Outcome, Scratch, author, lines, put_lines, whole};

/// A text of several chunks in which many characters have more than one byte.
fn long_text() -> String {
    let line = |line: usize| format!("line {line} of the long text: {}\n", "né≈😀".repeat(line % 9));
    (0..900).map(line).collect::<Vec<_>>().concat()
}

/// Everything that a corpus can hold.
fn fill(writer: &mut Writer) -> store::Result<()> {
    let text = long_text();
    let passages = [lines(Layer::Page, &text), lines(Layer::Turn, &text)[..40].to_vec()].concat();
    writer.put_document(&NewDocument {
        path: "long.txt",
        kind: "text",
        title: "long",
        text: &text,
        passages: &passages,
    })?;
    put_lines(writer, "short.txt", "first line\nsecond line\n")?;
    put_lines(writer, "empty.txt", "")?;
    let pages = writer.passages(Layer::Page)?;
    for page in pages.iter().step_by(50) {
        writer.put_notes(page.id, &[("abstract", "words"), ("header", "a line")], &author())?;
        writer.put_vectors("tiny", &[(page.id, whole(page, &[1.0, 0.5, 0.25]))])?;
    }
    let sources: Vec<_> = pages.iter().take(3).map(|page| page.id).collect();
    let (text, author) = ("a tale", author());
    let key = Digest::of(&[text]);
    let tale = NewDerived { kind: "tale", key, text, sources: &sources, bond: Bond::All, author: &author };
    let ids = writer.put_derived(&[tale])?;
    writer.put_derived_vectors("tiny", &[(ids[0], vec![1.0, 0.0, 0.0])])
}

/// A corpus whose file is a fixture.
fn old() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.file("")).expect("a folder for temporary files takes a folder");
    fs::copy(fixture("schema2.sqlite"), scratch.file("memory.sqlite")).expect("the fixture is in the repository");
    scratch
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn version(path: &Path) -> rusqlite::Result<i64> {
    Connection::open(path)?.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Checks that a corpus has what [`fill`] stores.
fn check(corpus: &Corpus) -> Outcome {
    corpus.verify()?;
    let fresh = Scratch::new();
    let mut writer = fresh.writer();
    fill(&mut writer)?;
    assert_eq!(corpus.digest()?, writer.digest()?);
    assert_eq!(corpus.digest()?.to_string(), "654310e41b1e7686aec41483e7c7118dfe9bf8acf562a59975ecae168b5ec034");
    let text = long_text();
    assert_eq!(corpus.document_text(corpus.documents()?[0].id)?, text);
    for (page, line) in corpus.passages_of(corpus.documents()?[0].id, Layer::Page)?.iter().zip(text.lines()) {
        assert_eq!(corpus.passage_text(page.id)?, line.trim_end());
    }
    let index = |corpus: &Corpus| LexicalIndex::open(corpus, Layer::Page, IndexText::Content, Bm25::default());
    assert_eq!(index(corpus)?.search("line 777 long", 9), index(&writer)?.search("line 777 long", 9));
    assert_eq!(corpus.derived("tale")?.len(), 1);
    Ok(())
}

#[test]
fn a_reader_reads_a_corpus_of_an_earlier_schema_as_it_is() -> Outcome {
    let scratch = old();
    let before = fs::read(scratch.file("memory.sqlite"))?;
    check(&scratch.corpora.open("scratch")?)?;
    assert!(fs::read(scratch.file("memory.sqlite"))? == before, "a reader changes nothing");
    Ok(())
}

#[test]
fn a_writer_upgrades_a_corpus_of_an_earlier_schema_and_keeps_a_backup() -> Outcome {
    let scratch = old();
    let mut writer = scratch.corpora.open_writer("scratch")?;
    check(&writer)?;
    let backup = scratch.file("memory.schema2.sqlite");
    assert_eq!(version(&backup)?, 2);
    put_lines(&mut writer, "new.txt", "a new line\n")?;
    drop(writer);
    assert_eq!(version(&scratch.file("memory.sqlite"))?, 3);
    assert_eq!(scratch.corpora.open("scratch")?.counts()?.documents, 4);

    // The backup is the corpus before.
    let other = Scratch::new();
    fs::create_dir_all(other.file(""))?;
    fs::copy(&backup, other.file("memory.sqlite"))?;
    check(&other.corpora.open("scratch")?)
}

#[test]
fn removed_texts_leave_the_backup_too() -> Outcome {
    let scratch = old();
    let mut writer = scratch.corpora.open_writer("scratch")?;
    let document = writer.documents()?[1].id;
    writer.remove_document(document)?;
    assert!(!scratch.file("memory.schema2.sqlite").exists());
    Ok(())
}

#[test]
fn an_upgraded_corpus_has_the_tables_of_a_new_one() -> Outcome {
    let columns = |scratch: &Scratch| -> rusqlite::Result<Vec<String>> {
        let file = Connection::open(scratch.file("memory.sqlite"))?;
        let columns =
            "SELECT concat_ws(' ', tables.name, columns.cid, columns.name, columns.type) FROM sqlite_schema AS tables
             JOIN pragma_table_info(tables.name) AS columns ORDER BY tables.name, columns.cid";
        file.prepare(columns)?.query_map([], |row| row.get(0))?.collect()
    };
    let (upgraded, new) = (old(), Scratch::new());
    drop((upgraded.corpora.open_writer("scratch")?, new.writer()));
    assert_eq!(columns(&upgraded)?, columns(&new)?);
    Ok(())
}
