//! A damaged corpus is repaired: what can be read stays, what cannot is named.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use store::{Bond, Digest, Error, Layer, Loss, NewDerived, Repaired, Writer};

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

/// Flips a bit of a pattern in a database.
pub fn flip(path: &Path, pattern: &[u8]) -> Outcome {
    let mut bytes = fs::read(path)?;
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
    flip(&scratch.file("memory.sqlite"), b"line 7 of document 3")?;
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
fn ids_are_not_reused_where_no_document_could_be_saved() -> Outcome {
    let scratch = Scratch::new();
    let (lost, page) = {
        let mut writer = scratch.writer();
        let lost = put_lines(&mut writer, "only.txt", "the only line\n")?;
        (lost, writer.passages(Layer::Page)?[0].id)
    };
    flip(&scratch.file("memory.sqlite"), b"the only line")?;
    let loss = Loss { documents: vec!["only.txt".to_owned()], ..Loss::default() };
    assert_eq!(scratch.corpora.repair("scratch")?, Repaired::Without(loss));
    let mut writer = scratch.corpora.open_writer("scratch")?;
    let again = put_lines(&mut writer, "only.txt", "again\n")?;
    assert!(again > lost && writer.passages(Layer::Page)?[0].id > page);
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
    flip(&scratch.file("memory.sqlite"), &bytes)?;
    let repaired = scratch.corpora.repair("scratch")?;
    assert_eq!(repaired, Repaired::Without(Loss { vectors: 1, ..Loss::default() }));
    let corpus = scratch.corpora.open("scratch")?;
    corpus.verify()?;
    assert_eq!(corpus.without_vectors(Layer::Page, "tiny")?.len(), 1);
    Ok(())
}

#[test]
fn removed_texts_leave_the_files_of_repairs_too() -> Outcome {
    let scratch = filled()?;
    // A repair was killed, and an earlier one has kept a file with its log.
    let stale = ["memory.repaired.sqlite", "memory.repaired.sqlite-wal", "memory.damaged.sqlite-wal"];
    stale.iter().try_for_each(|name| fs::write(scratch.file(name), "words"))?;
    flip(&scratch.file("memory.sqlite"), b"line 7 of document 3")?;
    scratch.corpora.repair("scratch")?;
    assert!(scratch.file("memory.damaged.sqlite").exists());
    assert!(stale.iter().all(|name| fs::read(scratch.file(name)).unwrap_or_default() != b"words"));

    let more = ["memory.repaired.sqlite", "memory.repaired.new-wal", "memory.damaged.sqlite-wal"];
    more.iter().try_for_each(|name| fs::write(scratch.file(name), "words"))?;
    let mut writer = scratch.corpora.open_writer("scratch")?;
    let gone = writer.documents()?[0].id;
    writer.remove_document(gone)?;
    let names = fs::read_dir(scratch.file(""))?.map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()));
    let names: Vec<String> = names.collect::<Result<_, std::io::Error>>()?;
    let live = ["memory.sqlite", "memory.sqlite-wal", "memory.sqlite-shm"];
    let copies = names.iter().filter(|name| name.starts_with("memory.") && !live.contains(&name.as_str()));
    assert_eq!(copies.collect::<Vec<_>>(), [] as [&String; 0]);
    Ok(writer.verify()?)
}

/// Fills the first page of a table or an index with nonsense.
fn overwrite(scratch: &Scratch, what: &str) -> Outcome {
    let path = scratch.file("memory.sqlite");
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    let page = Connection::open(&path)?.query_row(root, [what], |row| row.get::<_, u32>(0))? as usize;
    let mut bytes = fs::read(&path)?;
    bytes[(page - 1) * 4096..][..4096].fill(0xa5);
    Ok(fs::write(path, bytes)?)
}

#[test]
fn a_damaged_last_id_does_not_decide_how_much_is_tried() -> Outcome {
    let scratch = filled()?;
    let set = "UPDATE sqlite_sequence SET seq = 1 << 62 WHERE name = 'document'";
    Connection::open(scratch.file("memory.sqlite"))?.execute(set, [])?;
    overwrite(&scratch, "document")?;
    let before = fs::read(scratch.file("memory.sqlite"))?;
    let Repaired::Without(loss) = scratch.corpora.repair("scratch")? else { panic!("it is damaged") };
    assert_eq!(loss.documents.len(), DOCUMENTS, "the index has the ids: {loss:?}");

    fs::write(scratch.file("memory.sqlite"), before)?;
    overwrite(&scratch, "sqlite_autoindex_document_1")?;
    let refused = scratch.corpora.repair("scratch");
    let Err(Error::Damaged { what, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(what, format!("the table document and its last id {}", 1_i64 << 62));
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
            Ok(Repaired::Fetched { .. }) => panic!("it is not shared"),
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
