//! Texts derived from several passages reference them and are deleted with them.

use rusqlite::Connection;
use store::{
    Author, Bond, Corpus, Derived, DerivedId, Digest, DocId, Error, Layer, NewDerived, PassageId, VectorProblem, Writer,
};

use crate::scratch::{Outcome, Scratch, author, lines, put_lines};

/// A corpus of two documents with two pages each.
fn two_documents(scratch: &Scratch) -> store::Result<(Writer, [DocId; 2], Vec<PassageId>)> {
    let mut writer = scratch.writer();
    let a = put_lines(&mut writer, "a", "one\ntwo\n")?;
    let b = put_lines(&mut writer, "b", "three\nfour\n")?;
    let pages = writer.passages(Layer::Page)?.into_iter().map(|page| page.id).collect();
    Ok((writer, [a, b], pages))
}

fn put(writer: &mut Writer, text: &str, sources: &[PassageId], bond: Bond) -> store::Result<DerivedId> {
    let item = NewDerived { kind: "tale", key: Digest::of(&[text]), text, sources, bond, author: &author() };
    Ok(writer.put_derived(&[item])?[0])
}

fn texts(corpus: &Corpus, kind: &str) -> store::Result<Vec<(String, Vec<PassageId>)>> {
    Ok(corpus.derived(kind)?.into_iter().map(|derived| (derived.text, derived.sources)).collect())
}

#[test]
fn what_was_put_comes_back() -> Outcome {
    let scratch = Scratch::new();
    let (mut writer, _, pages) = two_documents(&scratch)?;
    let id = put(&mut writer, "words", &[pages[2], pages[0], pages[2]], Bond::All)?;
    let expected = Derived {
        id,
        kind: "tale".to_owned(),
        key: Digest::of(&["words"]),
        text: "words".to_owned(),
        author: author(),
        sources: vec![pages[0], pages[2]],
    };
    assert_eq!(writer.derived_at("tale", &expected.key)?, Some(expected.clone()));
    assert_eq!(writer.derived_at("fact", &expected.key)?, None);
    assert_eq!(writer.derived("tale")?, [expected]);
    assert_eq!(writer.derived("fact")?, []);
    Ok(writer.verify()?)
}

#[test]
fn the_same_key_unites_the_sources_and_keeps_the_text() -> Outcome {
    let scratch = Scratch::new();
    let (mut writer, _, pages) = two_documents(&scratch)?;
    let key = Digest::of(&["Paris"]);
    let (first, other) = (author(), Author { model: "other".to_owned(), prompt: String::new() });
    let item = NewDerived { kind: "entity", key, text: "Paris", sources: &pages[..1], bond: Bond::Any, author: &first };
    let again = NewDerived { text: "PARIS", sources: &pages[1..3], author: &other, ..item };
    let ids = writer.put_derived(&[item, again, NewDerived { kind: "place", ..item }])?;
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2], "another kind is another text");
    assert_eq!(texts(&writer, "entity")?, [("Paris".to_owned(), pages[..3].to_vec())]);
    assert_eq!(writer.derived("entity")?[0].author, first);
    Ok(())
}

#[test]
fn a_removed_document_takes_exactly_what_rests_on_it() -> Outcome {
    let scratch = Scratch::new();
    let (mut writer, [a, b], pages) = two_documents(&scratch)?;
    // The last has the same sources as the first two: a summary of summaries.
    for (text, sources, bond) in [
        ("all of a", &pages[..2], Bond::All),
        ("all of b", &pages[2..], Bond::All),
        ("all of both", &pages[..], Bond::All),
        ("any of both", &pages[1..3], Bond::Any),
        ("any of a", &pages[..1], Bond::Any),
    ] {
        let id = put(&mut writer, text, sources, bond)?;
        writer.put_derived_vectors("tiny", &[(id, vec![1.0, 0.0])])?;
    }
    writer.remove_document(a)?;
    assert_eq!(
        texts(&writer, "tale")?,
        [("all of b".to_owned(), pages[2..].to_vec()), ("any of both".to_owned(), vec![pages[2]])]
    );
    assert_eq!(writer.derived_vectors("tale", "tiny")?.len(), 2);
    writer.verify()?;
    put_lines(&mut writer, "b", "another text\n")?;
    assert_eq!(texts(&writer, "tale")?, [], "a replaced document takes what rested on it too");
    assert!(matches!(writer.document(b), Err(Error::UnknownDocument(_))));
    Ok(writer.verify()?)
}

#[test]
fn a_new_cut_takes_what_rests_on_its_layer_only() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let text = "one\ntwo\n";
    let id = put_lines(&mut writer, "a", text)?;
    let chunks = lines(Layer::Chunk, text);
    writer.put_layer(id, Layer::Chunk, &chunks)?;
    let of = |writer: &Writer, layer| -> store::Result<Vec<PassageId>> {
        Ok(writer.passages(layer)?.into_iter().map(|passage| passage.id).collect())
    };
    let (page, chunk) = (of(&writer, Layer::Page)?, of(&writer, Layer::Chunk)?);
    put(&mut writer, "of pages", &page, Bond::All)?;
    put(&mut writer, "of chunks", &chunk, Bond::All)?;

    writer.put_layer(id, Layer::Chunk, &chunks)?;
    assert_eq!(of(&writer, Layer::Chunk)?, chunk, "the same cut changes nothing");
    writer.put_layer(id, Layer::Chunk, &chunks[..1])?;
    assert_eq!(texts(&writer, "tale")?, [("of pages".to_owned(), page)]);
    assert_eq!(of(&writer, Layer::Chunk)?.len(), 1);
    writer.put_layer(id, Layer::Chunk, &[])?;
    assert_eq!(of(&writer, Layer::Chunk)?, []);

    let outside = [store::NewPassage { bytes: 0..99, ..chunks[0].clone() }];
    assert!(matches!(writer.put_layer(id, Layer::Chunk, &outside), Err(Error::BadSpan { .. })));
    assert!(matches!(writer.put_layer(DocId(9), Layer::Chunk, &chunks), Err(Error::UnknownDocument(DocId(9)))));
    Ok(writer.verify()?)
}

#[test]
fn vectors_are_kept_checked_and_replaced() -> Outcome {
    let scratch = Scratch::new();
    let (mut writer, _, pages) = two_documents(&scratch)?;
    let one = put(&mut writer, "one", &pages[..1], Bond::All)?;
    let two = put(&mut writer, "two", &pages[..1], Bond::All)?;
    assert_eq!(writer.derived_without_vectors("tale", "tiny")?, [one, two]);
    writer.put_derived_vectors("tiny", &[(two, vec![3.0, 4.0])])?;
    assert_eq!(writer.derived_without_vectors("tale", "tiny")?, [one]);
    assert_eq!(writer.derived_without_vectors("tale", "other")?, [one, two]);
    assert_eq!(writer.derived_vectors("tale", "tiny")?, [(two, vec![0.6, 0.8])]);
    let mut check = |vector: Vec<f32>, expected: VectorProblem| {
        let put = writer.put_derived_vectors("tiny", &[(one, vec![1.0, 0.0]), (two, vector)]);
        assert!(matches!(&put, Err(Error::BadVector { problem, .. }) if *problem == expected), "{put:?}");
    };
    check(vec![1.0], VectorProblem::Dimensions { expected: 2, found: 1 });
    check(vec![f32::NAN, 1.0], VectorProblem::NotFinite);
    check(vec![0.0, 0.0], VectorProblem::Zero);
    assert_eq!(writer.derived_vectors("tale", "tiny")?, [(two, vec![0.6, 0.8])], "a refused batch changes nothing");
    writer.put_derived_vectors("tiny", &[(two, vec![0.0, 2.0])])?;
    assert_eq!(writer.derived_vectors("tale", "tiny")?, [(two, vec![0.0, 1.0])]);
    let unknown = writer.put_derived_vectors("tiny", &[(DerivedId(99), vec![1.0, 0.0])]);
    assert!(matches!(unknown, Err(Error::UnknownDerived(DerivedId(99)))), "{unknown:?}");
    writer.remove_derived(&[two, DerivedId(99)])?;
    assert_eq!(texts(&writer, "tale")?, [("one".to_owned(), vec![pages[0]])]);
    assert_eq!(writer.derived_vectors("tale", "tiny")?, []);
    Ok(writer.verify()?)
}

#[test]
fn what_rests_on_nothing_is_refused() -> Outcome {
    let scratch = Scratch::new();
    let (mut writer, _, pages) = two_documents(&scratch)?;
    let before = writer.digest()?;
    let good = author();
    let item =
        NewDerived { kind: "tale", key: Digest::of(&[]), text: "x", sources: &pages, bond: Bond::All, author: &good };
    let none = writer.put_derived(&[item, NewDerived { key: Digest::of(&["2"]), sources: &[], ..item }]);
    assert!(matches!(none, Err(Error::NoSource { .. })), "{none:?}");
    let unknown = writer.put_derived(&[NewDerived { sources: &[pages[0], PassageId(99)], ..item }]);
    assert!(matches!(unknown, Err(Error::UnknownPassage(PassageId(99)))), "{unknown:?}");
    assert_eq!(writer.digest()?, before, "a refused batch changes nothing");
    Ok(())
}

#[test]
fn the_digest_knows_derived_texts_but_not_when_they_came() -> Outcome {
    let digest = |items: &[(&str, usize)]| -> store::Result<Digest> {
        let scratch = Scratch::new();
        let (mut writer, _, pages) = two_documents(&scratch)?;
        for (text, page) in items {
            put(&mut writer, text, &pages[*page..=*page], Bond::Any)?;
        }
        writer.digest()
    };
    assert_eq!(digest(&[("x", 0), ("y", 1)])?, digest(&[("y", 1), ("x", 0)])?);
    assert_ne!(digest(&[("x", 0), ("y", 1)])?, digest(&[("x", 0), ("y", 2)])?);
    assert_ne!(digest(&[("x", 0)])?, digest(&[])?);
    Ok(())
}

#[test]
fn a_corpus_of_version_1_is_read_as_it_is_and_upgraded_by_a_writer() -> Outcome {
    let scratch = Scratch::new();
    let (writer, [a, _], pages) = two_documents(&scratch)?;
    let before = writer.digest()?;
    drop(writer);
    let file = scratch.file("memory.sqlite");
    Connection::open(&file)?.execute_batch(
        "DROP TABLE derived_vector; DROP TABLE derived_source; DROP TABLE derived; PRAGMA user_version = 1;
         ALTER TABLE document ADD COLUMN text TEXT NOT NULL DEFAULT '';
         UPDATE document SET text = (SELECT group_concat(text, '') FROM document_text WHERE document = id);
         DROP TABLE document_text;
         PRAGMA wal_checkpoint(TRUNCATE);",
    )?;
    let bytes = std::fs::read(&file)?;
    let reader = scratch.corpora.open("scratch")?;
    assert_eq!(reader.derived("tale")?, []);
    assert_eq!(reader.derived_without_vectors("tale", "tiny")?, []);
    assert_eq!(reader.digest()?, before);
    reader.verify()?;
    drop(reader);
    assert_eq!(std::fs::read(&file)?, bytes, "reading changes nothing");

    let mut writer = scratch.corpora.open_writer("scratch")?;
    assert_eq!(writer.digest()?, before);
    put(&mut writer, "all", &pages, Bond::All)?;
    put(&mut writer, "any", &pages, Bond::Any)?;
    drop(writer);
    let mut writer = scratch.corpora.open_writer("scratch")?;
    writer.remove_document(a)?;
    assert_eq!(texts(&writer, "tale")?, [("any".to_owned(), pages[2..].to_vec())]);
    Ok(writer.verify()?)
}
