//! Corpora of every schema open for ever: a reader reads them as they are, a writer upgrades them and keeps a backup.
//!
//! `fixtures/schemaN.sqlite` was written by [`fill`] while the schema was N, and is never written again. `MEMLOCAL_BLESS=1
//! cargo test --release -p store of_this_schema` writes the missing ones of a new schema, before its first release.

use std::env;
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

/// The schemas of which there are fixtures.
pub const SCHEMAS: [i64; 2] = [2, 3];

/// A corpus whose file is a fixture.
fn of_schema(schema: i64) -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.file("")).expect("a folder for temporary files takes a folder");
    let fixture = fixture(&format!("schema{schema}.sqlite"));
    fs::copy(fixture, scratch.file("memory.sqlite")).expect("the fixture is in the repository");
    scratch
}

fn old() -> Scratch {
    of_schema(2)
}

/// Whether the missing fixture of a new schema may be written.
pub fn is_blessed(fixture: &Path) -> bool {
    !fixture.exists() && env::var_os("MEMLOCAL_BLESS").is_some()
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
    assert_eq!(corpus.text_bytes(corpus.documents()?[0].id)?, text.len());
    for (page, line) in corpus.passages_of(corpus.documents()?[0].id, Layer::Page)?.iter().zip(text.lines()) {
        assert_eq!(corpus.passage_text(page.id)?, line.trim_end());
    }
    let index = |corpus: &Corpus| LexicalIndex::open(corpus, Layer::Page, IndexText::Content, Bm25::default());
    assert_eq!(index(corpus)?.search("line 777 long", 9), index(&writer)?.search("line 777 long", 9));
    assert_eq!(corpus.derived("tale")?.len(), 1);
    Ok(())
}

#[test]
fn there_is_a_fixture_of_this_schema() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    fill(&mut writer)?;
    let schema = writer.schema()?;
    let fixture = fixture(&format!("schema{schema}.sqlite"));
    if is_blessed(&fixture) {
        writer.back_up(&fixture)?;
    }
    assert!(fixture.exists() && SCHEMAS.last() == Some(&schema), "schema {schema} has no fixture");
    Ok(())
}

#[test]
fn a_reader_reads_a_corpus_of_every_schema_as_it_is() -> Outcome {
    for schema in SCHEMAS {
        let scratch = of_schema(schema);
        let before = fs::read(scratch.file("memory.sqlite"))?;
        check(&scratch.corpora.open("scratch")?)?;
        assert!(fs::read(scratch.file("memory.sqlite"))? == before, "a reader changes nothing");
    }
    Ok(())
}

#[test]
fn a_range_beyond_a_text_of_any_schema_is_none() -> Outcome {
    for schema in SCHEMAS {
        let scratch = of_schema(schema);
        let corpus = scratch.corpora.open("scratch")?;
        let document = corpus.documents()?[0].id;
        let text = corpus.document_text(document)?;
        assert_eq!(corpus.text_range(document, &(0..text.len()))?, Some(text.clone()));
        assert_eq!(corpus.text_range(document, &(text.len()..text.len()))?, Some(String::new()));
        for range in [1..text.len() + 1, text.len()..text.len() + 9, 0..usize::MAX, usize::MAX - 1..usize::MAX] {
            assert_eq!(corpus.text_range(document, &range)?, None, "{range:?} of schema {schema}");
        }
    }
    Ok(())
}

#[test]
fn a_writer_writes_to_a_corpus_of_every_schema() -> Outcome {
    for schema in SCHEMAS {
        let scratch = of_schema(schema);
        let mut writer = scratch.corpora.open_writer("scratch")?;
        check(&writer)?;
        put_lines(&mut writer, "new.txt", "a new line\n")?;
        let short = writer.document_at("short.txt")?.ok_or("it is there")?.id;
        writer.remove_document(short)?;
        writer.verify()?;
        drop(writer);
        assert_eq!(Some(&version(&scratch.file("memory.sqlite"))?), SCHEMAS.last());
        assert_eq!(scratch.corpora.open("scratch")?.counts()?.documents, 3);
    }
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
