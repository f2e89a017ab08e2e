//! A damaged corpus is repaired: what can be read stays, what cannot is named.

use std::fs;

use store::{Bond, Digest, Layer, Loss, NewDerived, Repaired, Writer};

use crate::scratch::{Outcome, Scratch, author, put_lines, whole};

const DOCUMENTS: usize = 5;

fn fill(writer: &mut Writer) -> store::Result<()> {
    for number in 0..DOCUMENTS {
        let line = |line: usize| format!("line {line} of document {number}: {}\n", "word ".repeat(30));
        let text: String = (0..40).map(line).collect();
        put_lines(writer, &format!("{number}.txt"), &text)?;
    }
    for page in writer.passages(Layer::Page)? {
        writer.put_notes(page.id, &[("abstract", &format!("abstract of {}", page.id))], &author())?;
        writer.put_vectors("tiny", &[(page.id, whole(&page, &[0.5, f32::from(page.ordinal as u16), 1.0]))])?;
        let text = format!("derived from {}", page.id);
        let (key, author) = (Digest::of(&[&text]), author());
        let new = NewDerived { kind: "tale", key, text: &text, sources: &[page.id], bond: Bond::All, author: &author };
        writer.put_derived(&[new])?;
    }
    Ok(())
}

fn filled() -> store::Result<Scratch> {
    let scratch = Scratch::new();
    fill(&mut scratch.writer())?;
    Ok(scratch)
}

fn flip(scratch: &Scratch, pattern: &[u8]) -> Outcome {
    let path = scratch.file("memory.sqlite");
    let mut bytes = fs::read(&path)?;
    let place = bytes.windows(pattern.len()).position(|at| at == pattern).ok_or("the pattern is in the file")?;
    bytes[place + pattern.len() / 2] ^= 1;
    Ok(fs::write(path, bytes)?)
}

#[test]
fn a_sound_corpus_is_left_alone() -> Outcome {
    let scratch = filled()?;
    let before = fs::read(scratch.file("memory.sqlite"))?;
    assert_eq!(scratch.corpora.repair("scratch")?, Repaired::Sound);
    assert_eq!(fs::read(scratch.file("memory.sqlite"))?, before);
    Ok(())
}

#[test]
fn a_damaged_text_costs_its_document_only() -> Outcome {
    let scratch = filled()?;
    flip(&scratch, b"line 7 of document 3")?;
    let repaired = scratch.corpora.repair("scratch")?;
    let loss = Loss { documents: vec!["3.txt".to_owned()], derived: 40, ..Loss::default() };
    assert_eq!(repaired, Repaired::Without(loss));
    assert!(scratch.file("memory.damaged.sqlite").exists());
    let mut writer = scratch.corpora.open_writer("scratch")?;
    writer.verify()?;
    assert_eq!(writer.documents()?.len(), DOCUMENTS - 1);
    assert_eq!(writer.pending(Layer::Page, "abstract")?, []);
    assert_eq!(writer.without_vectors(Layer::Page, "tiny")?, []);
    let id = put_lines(&mut writer, "3.txt", "again\n")?;
    assert!(usize::try_from(id.0).is_ok_and(|id| id > DOCUMENTS), "ids are never reused");
    Ok(())
}

#[test]
fn a_damaged_vector_is_made_again() -> Outcome {
    let scratch = filled()?;
    let vector = {
        let corpus = scratch.corpora.open("scratch")?;
        let page = corpus.passages(Layer::Page)?[17].id;
        corpus.vectors("tiny", page)?[0].vector.clone()
    };
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    flip(&scratch, &bytes)?;
    let repaired = scratch.corpora.repair("scratch")?;
    assert_eq!(repaired, Repaired::Without(Loss { vectors: 1, ..Loss::default() }));
    let corpus = scratch.corpora.open("scratch")?;
    corpus.verify()?;
    assert_eq!(corpus.without_vectors(Layer::Page, "tiny")?.len(), 1);
    Ok(())
}

#[test]
fn any_damaged_page_leaves_a_sound_corpus_or_an_error() -> Outcome {
    let scratch = filled()?;
    let path = scratch.file("memory.sqlite");
    let good = fs::read(&path)?;
    let expected = scratch.corpora.open("scratch")?.digest()?;
    let (mut repaired, mut refused) = (0, 0);
    for page in 0..good.len() / 4096 {
        for log in ["memory.sqlite-wal", "memory.sqlite-shm"] {
            let _missing = fs::remove_file(scratch.file(log));
        }
        let mut bad = good.clone();
        bad[page * 4096..][..4096].fill(if page % 2 == 0 { 0 } else { 0xa5 });
        fs::write(&path, &bad)?;
        match scratch.corpora.repair("scratch") {
            Ok(Repaired::Sound) => assert_eq!(scratch.corpora.open("scratch")?.digest()?, expected),
            Ok(Repaired::Without(loss)) => {
                let corpus = scratch.corpora.open("scratch")?;
                corpus.verify()?;
                assert_eq!(corpus.documents()?.len() + loss.documents.len(), DOCUMENTS, "page {page}: {loss:?}");
                repaired += 1;
            }
            Ok(Repaired::Fetched) => panic!("it is not shared"),
            Err(_) => {
                assert!(fs::read(&path)? == bad, "a corpus that cannot be repaired is left alone");
                refused += 1;
            }
        }
    }
    println!("{repaired} repaired, {refused} refused, of {} pages", good.len() / 4096);
    assert!(repaired > refused);
    Ok(())
}
