//! Documents are added, replaced and removed, and data derived from them is deleted with them.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use store::{Bm25, Change, DenseIndex, DocId, Error, IndexText, Layer, LexicalIndex, NewDocument, PassageId, Writer};

use crate::scratch::{Outcome, Scratch, author, lines, put_lines, whole};

const TEXT: &str = "garlic in October\nfig by the wall\n";

/// Stores a document with a note and a vector on each of its pages.
fn remember(writer: &mut Writer, path: &str, text: &str) -> store::Result<DocId> {
    let id = put_lines(writer, path, text)?;
    for page in writer.passages_of(id, Layer::Page)? {
        writer.put_notes(page.id, &[("abstract", "about plants")], &author())?;
        writer.put_vectors("tiny", &[(page.id, whole(&page, &[1.0, 0.0]))])?;
    }
    Ok(id)
}

fn found(writer: &Writer, query: &str) -> store::Result<Vec<PassageId>> {
    let index = LexicalIndex::open(writer, Layer::Page, IndexText::NoteAndContent("abstract"), Bm25::default())?;
    Ok(index.search(query, 9).into_iter().map(|hit| hit.passage).collect())
}

#[test]
fn what_was_put_comes_back() -> Outcome {
    let scratch = Scratch::new();
    let id = remember(&mut scratch.writer(), "garden.txt", TEXT)?;
    let corpus = scratch.corpora.open("scratch")?;
    let document = corpus.document(id)?;
    assert_eq!(
        (document.path.as_str(), document.kind.as_str(), document.title.as_str()),
        ("garden.txt", "text", "garden.txt")
    );
    assert_eq!(corpus.document_text(id)?, TEXT);
    assert_eq!(corpus.document_at("garden.txt")?, Some(document));
    assert_eq!(corpus.document_at("elsewhere")?, None);
    let pages = corpus.passages_of(id, Layer::Page)?;
    let texts: Vec<String> = pages.iter().map(|page| corpus.passage_text(page.id)).collect::<store::Result<_>>()?;
    assert_eq!(texts, ["garlic in October", "fig by the wall"]);
    assert_eq!(pages.iter().map(|page| page.ordinal).collect::<Vec<_>>(), [0, 1]);
    Ok(corpus.verify()?)
}

#[test]
fn putting_the_same_changes_nothing() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let id = remember(&mut writer, "a", TEXT)?;
    let before = writer.digest()?;
    let passages = lines(Layer::Page, TEXT);
    let again = NewDocument { path: "a", kind: "text", title: "a", text: TEXT, passages: &passages };
    assert_eq!(writer.put_document(&again)?, (id, Change::Unchanged));
    assert_eq!(writer.put_document(&NewDocument { passages: &[], ..again })?, (id, Change::Unchanged));
    assert_eq!(writer.digest()?, before);
    Ok(())
}

#[test]
fn a_changed_text_replaces_all_that_was_derived() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let old = remember(&mut writer, "a", TEXT)?;
    let kept = remember(&mut writer, "b", "leeks\n")?;
    let old_pages = writer.passages_of(old, Layer::Page)?;
    let new_text = "garlic in November\n";
    let passages = lines(Layer::Page, new_text);
    let (new, change) = writer.put_document(&NewDocument {
        path: "a",
        kind: "text",
        title: "a",
        text: new_text,
        passages: &passages,
    })?;
    assert_eq!(change, Change::Replaced);
    let new_page = writer.passages_of(new, Layer::Page)?[0].id;
    assert!(old_pages.iter().all(|page| page.id < new_page), "ids are used again");
    assert_eq!(found(&writer, "fig")?, []);
    assert_eq!(found(&writer, "october")?, []);
    assert_eq!(found(&writer, "november")?, [new_page]);
    assert!(matches!(writer.document(old), Err(Error::UnknownDocument(_))));
    assert!(matches!(writer.passage_text(old_pages[0].id), Err(Error::UnknownPassage(_))));
    assert_eq!(writer.notes(old_pages[0].id)?, []);
    assert_eq!(writer.vectors("tiny", old_pages[0].id)?, []);
    assert_eq!(writer.pending(Layer::Page, "abstract")?, [new_page]);
    assert_eq!(writer.without_vectors(Layer::Page, "tiny")?, [new_page]);
    let near = DenseIndex::open(&writer, Layer::Page, "tiny")?.search(&[1.0, 0.0], 9)?;
    assert_eq!(near.iter().map(|hit| hit.passage).collect::<Vec<_>>(), [writer.passages_of(kept, Layer::Page)?[0].id]);
    Ok(writer.verify()?)
}

#[test]
fn a_new_cut_of_the_same_text_replaces_its_layer_only() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let id = remember(&mut writer, "a", TEXT)?;
    let turns = lines(Layer::Turn, TEXT);
    let document = NewDocument { path: "a", kind: "text", title: "a", text: TEXT, passages: &turns };
    assert_eq!(writer.put_document(&document)?, (id, Change::Recut));
    assert_eq!(writer.pending(Layer::Page, "abstract")?, [], "another layer loses no notes");
    let mut longer = turns.clone();
    longer[0].tokens += 1;
    let turn_before = writer.passages_of(id, Layer::Turn)?[0].id;
    assert_eq!(writer.put_document(&NewDocument { passages: &longer, ..document })?, (id, Change::Recut));
    assert!(writer.passages_of(id, Layer::Turn)?[0].id > turn_before);
    assert_eq!(writer.passages(Layer::Turn)?.len(), 2);
    assert_eq!(writer.passages(Layer::Page)?.len(), 2);
    Ok(writer.verify()?)
}

#[test]
fn passages_are_counted_by_layer() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    assert_eq!(writer.count(Layer::Page)?, 0);
    let passages = [lines(Layer::Page, "one\ntwo\n"), lines(Layer::Turn, "one\ntwo\nthree\n")].concat();
    let text = "one\ntwo\nthree\n";
    writer.put_document(&NewDocument { path: "a", kind: "text", title: "a", text, passages: &passages })?;
    put_lines(&mut writer, "b", "four\nfive\n")?;
    assert_eq!([writer.count(Layer::Page)?, writer.count(Layer::Turn)?, writer.count(Layer::Chunk)?], [4, 3, 0]);
    Ok(())
}

#[test]
fn derived_files_go_when_a_document_goes_or_changes() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let (kept, gone) = (remember(&mut writer, "kept.txt", TEXT)?, remember(&mut writer, "gone.txt", TEXT)?);
    let file = writer.cache_file("prefixes.kv");
    let adapter = writer.trained().join("reader").join("weights");
    let keep_in =
        |file: &Path| fs::create_dir_all(file.parent().unwrap()).and_then(|()| fs::write(file, "words of a document"));
    let keep = || keep_in(&file).and_then(|()| keep_in(&adapter));
    keep()?;
    remember(&mut writer, "new.txt", TEXT)?;
    assert!(file.exists() && adapter.exists(), "a new document makes no derived file wrong");
    writer.remove_document(gone)?;
    assert!(!file.exists() && !adapter.exists());
    keep()?;
    remember(&mut writer, "kept.txt", "something else\n")?;
    assert!(!file.exists() && !adapter.exists());
    assert!(writer.document(kept).is_err());

    let reader = scratch.corpora.open("scratch")?;
    keep()?;
    reader.clear_outdated_cache()?;
    assert!(file.exists() && adapter.exists(), "it is what the reader sees");
    remember(&mut writer, "kept.txt", "something else again\n")?;
    keep()?;
    reader.clear_outdated_cache()?;
    assert!(!file.exists() && !adapter.exists(), "a reader who came before the change derives nothing that stays");
    Ok(())
}

#[test]
fn derived_files_stay_when_a_deletion_fails() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let id = remember(&mut writer, "kept.txt", TEXT)?;
    let files =
        [writer.cache_file("prefixes.kv"), writer.trained().join("weights"), scratch.file("memory.schema2.sqlite")];
    for file in &files {
        fs::create_dir_all(file.parent().ok_or("it is in a folder")?)?;
        fs::write(file, "words of a document")?;
    }
    let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON document BEGIN SELECT RAISE(ABORT, 'refused'); END";
    Connection::open(scratch.file("memory.sqlite"))?.execute_batch(refuse)?;
    assert!(remember(&mut writer, "kept.txt", "something else\n").is_err());
    assert!(files.iter().all(|file| file.exists()), "nothing was replaced");
    assert!(writer.remove_document(id).is_err());
    assert!(files.iter().all(|file| file.exists()), "nothing was removed");
    assert!(!scratch.file(".removed").exists());
    Connection::open(scratch.file("memory.sqlite"))?.execute_batch("DROP TRIGGER refuse")?;
    writer.remove_document(id)?;
    assert!(files.iter().all(|file| !file.exists()));
    Ok(())
}

#[test]
fn what_a_killed_process_has_left_goes_with_the_next_writer() -> Outcome {
    let scratch = Scratch::new();
    drop(scratch.writer());
    let removed = scratch.file(".removed/trained/weights");
    fs::create_dir_all(removed.parent().ok_or("it is in a folder")?)?;
    fs::write(&removed, "words of a document")?;
    let unfinished = scratch.file("questions.json.7-0.new");
    fs::write(&unfinished, "words of a document")?;
    scratch.corpora.open("scratch")?;
    assert!(removed.exists() && unfinished.exists(), "a reader changes nothing");
    let mut writer = scratch.corpora.open_writer("scratch")?;
    assert!(!scratch.file(".removed").exists());
    assert!(unfinished.exists(), "another process may be writing it");
    let id = remember(&mut writer, "a.txt", TEXT)?;
    writer.remove_document(id)?;
    assert!(!unfinished.exists(), "there are no other processes");
    Ok(())
}

#[test]
fn removing_a_document_leaves_the_others_as_they_were() -> Outcome {
    let (with, without) = (Scratch::new(), Scratch::new());
    let (mut with, mut without) = (with.writer(), without.writer());
    let gone = remember(&mut with, "gone", TEXT)?;
    remember(&mut with, "kept", "leeks\nbeans\n")?;
    remember(&mut without, "kept", "leeks\nbeans\n")?;
    with.remove_document(gone)?;
    assert_eq!(with.digest()?, without.digest()?);
    assert_eq!(with.counts()?, without.counts()?);
    assert!(matches!(with.remove_document(gone), Err(Error::UnknownDocument(_))));
    Ok(with.verify()?)
}

#[test]
fn a_removed_text_is_not_left_in_any_file() -> Outcome {
    let scratch = Scratch::new();
    let secret = "the key is under the third stone\n";
    let mut writer = scratch.writer();
    remember(&mut writer, "kept", &TEXT.repeat(300))?;
    let id = remember(&mut writer, "secret", secret)?;
    writer.remove_document(id)?;
    drop(writer);
    for entry in fs::read_dir(scratch.file(""))? {
        let bytes = fs::read(entry?.path())?;
        assert!(!bytes.windows(secret.len() - 1).any(|window| window == &secret.as_bytes()[..secret.len() - 1]));
    }
    Ok(())
}

#[test]
fn documents_of_every_size_and_script_are_kept() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut check = |path: &str, text: &str| -> store::Result<()> {
        let id = put_lines(&mut writer, path, text)?;
        assert_eq!(writer.document_text(id)?, text);
        assert_eq!(writer.text_bytes(id)?, text.len());
        for (page, line) in writer.passages_of(id, Layer::Page)?.iter().zip(text.split_inclusive('\n')) {
            assert_eq!(writer.passage_text(page.id)?, line.trim_end());
            assert_eq!(page.span.chars().len(), line.trim_end().chars().count());
        }
        Ok(())
    };
    check("empty", "")?;
    check("", "a document without a path")?;
    check("nul", "before\0after\n\0\n")?;
    check("../../etc/passwd", "a path is only a name here")?;
    check("scripts", "南京市长江大桥\nقهوة\n👨‍👩‍👧 e\u{301}\n")?;
    check("large", &"a line of forty characters, more or less\n".repeat(50_000))?;
    Ok(())
}

#[test]
fn the_length_of_a_text_is_known_without_reading_it() -> Outcome {
    let scratch = Scratch::new();
    let text = "a line of forty characters, more or less\n".repeat(5_000);
    let id = put_lines(&mut scratch.writer(), "large", &text)?;
    let middle = "DELETE FROM document_text WHERE start_byte BETWEEN 1 AND 70000";
    Connection::open(scratch.file("memory.sqlite"))?.execute_batch(middle)?;
    let corpus = scratch.corpora.open("scratch")?;
    assert!(corpus.document_text(id).is_err(), "a part of it is missing");
    assert_eq!(corpus.text_bytes(id)?, text.len());
    Ok(())
}
