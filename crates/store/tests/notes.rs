//! Notes are returned as they were stored, in the order of the passages.

use store::{Author, Error, Layer, PassageId};

use crate::scratch::{Outcome, Scratch, author, put_lines};

#[test]
fn what_is_pending_shrinks_in_order() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a", "one\ntwo\nthree\n")?;
    let ids: Vec<PassageId> = writer.passages(Layer::Page)?.iter().map(|page| page.id).collect();
    assert_eq!(writer.pending(Layer::Page, "abstract")?, ids);
    assert_eq!(writer.pending(Layer::Turn, "abstract")?, []);
    assert_eq!(writer.counts()?.pending, 3);

    writer.put_notes(ids[1], &[("abstract", "2"), ("header", "[2]")], &author())?;
    assert_eq!(writer.pending(Layer::Page, "abstract")?, [ids[0], ids[2]]);
    assert_eq!(writer.pending(Layer::Page, "question")?, ids);
    writer.put_notes(ids[0], &[("abstract", "1")], &author())?;
    let memo: Vec<String> = writer.notes_named(Layer::Page, "abstract")?.into_iter().map(|note| note.text).collect();
    assert_eq!(memo, ["1", "2"]);
    assert_eq!(writer.counts()?.pending, 1);
    Ok(())
}

#[test]
fn a_note_of_the_same_name_is_replaced() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a", "one\n")?;
    let page = writer.passages(Layer::Page)?[0].id;
    let other = Author { model: "other".to_owned(), prompt: "4567".to_owned() };
    writer.put_notes(page, &[("abstract", "old"), ("header", "kept \u{1f600}")], &author())?;
    writer.put_notes(page, &[("abstract", "")], &other)?;
    let notes: Vec<_> = writer.notes(page)?.into_iter().map(|note| (note.name, note.text, note.author)).collect();
    let expected = [("abstract", "", other), ("header", "kept \u{1f600}", author())];
    assert_eq!(notes, expected.map(|(name, text, author)| (name.to_owned(), text.to_owned(), author)));
    Ok(())
}

#[test]
fn a_note_needs_its_passage() {
    let scratch = Scratch::new();
    let put = scratch.writer().put_notes(PassageId(7), &[("abstract", "x")], &author());
    assert!(matches!(put, Err(Error::UnknownPassage(PassageId(7)))), "{put:?}");
}
