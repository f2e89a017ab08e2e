//! Texts other than conversations: cut into passages once, retrieved, and cited by sentence.

use memory::direct::Direct;
use memory::memcot::Options;
use memory::{MemoryError, Missing, Settings};
use store::Layer;

use super::{judge, respond, scripted, settings, zoom_in, zoom_out};
use crate::scratch::{Scratch, calls_of, document, input, script};

/// Two pages; the first has two passages.
fn scratch() -> Scratch {
    let filler = "The sea was grey and the wind blew from the west. ".repeat(20);
    let first = format!("Ada Brook kept the lamp. {filler}");
    let scratch = Scratch::new();
    let source = document("pell.txt", &[&first, "Tom Reed built boats at Pell. He had a dog."]);
    scratch.ingest(&[source], &script(&[]), &settings(Options::default())).expect("nothing is called");
    scratch
}

#[test]
fn passages_are_sentences_of_one_page() {
    let scratch = scratch();
    let corpus = scratch.corpus();
    let pages = corpus.passages(Layer::Page).unwrap();
    let passages = corpus.passages(Layer::Turn).unwrap();
    assert_eq!((pages.len(), passages.len()), (2, 3));
    for passage in &passages {
        assert!(passage.tokens <= 200, "{passage:?}");
        assert!(pages.iter().any(|page| page.span.contains(passage.span)), "{passage:?}");
    }
    assert_eq!(corpus.passage_text(passages[2].id).unwrap(), "Tom Reed built boats at Pell. He had a dog.");
}

#[test]
fn a_text_is_cut_and_embedded_once() {
    let scratch = scratch();
    let settings = settings(Options::default());
    assert_eq!(scratch.missing(&settings), Missing::default());
    let before = scratch.corpus().digest().unwrap();
    scratch.ingest(&[], &script(&[]), &settings).expect("nothing is called");
    assert_eq!(scratch.corpus().digest().unwrap(), before);
}

#[test]
fn a_text_that_is_not_cut_is_not_ready() {
    let scratch = Scratch::new();
    let direct = Settings { method: &Direct, ..Settings::default() };
    scratch.ingest(&[document("a.txt", &["One.", "Two."])], &script(&[]), &direct).expect("nothing is called");
    let settings = settings(Options::default());
    assert_eq!(scratch.missing(&settings), Missing { calls: 0, vectors: 2 });
    let refused = scratch.ask("How many?", &script(&[]), &settings).answer;
    assert!(matches!(refused, Err(MemoryError::NotReady { pending: 2, .. })), "{refused:?}");
}

#[test]
fn a_window_ends_with_its_page_and_sentences_are_cited() {
    let scratch = scratch();
    let caller = scripted(&[
        zoom_in("[5]"),
        zoom_out("[]"),
        judge("[5]", true, "Break", "[]"),
        respond("Tom Reed built boats."),
    ]);
    let asked = scratch.ask("Who built boats at Pell?", &caller, &settings(Options::default()));
    let answer = asked.answer.expect("the script is whole");
    let windows = input(&calls_of("memcot.zoom_out", &caller)[0], "CONTEXT_WINDOWS");
    assert_eq!(windows, "Session page 2:\n5: Tom Reed built boats at Pell. He had a dog.");
    let [first, ..] = &answer.citations[..] else { panic!("nothing is cited") };
    assert_eq!((first.quote.as_str(), first.page), ("Tom Reed built boats at Pell.", 2));
}

#[test]
fn a_text_that_is_replaced_is_cut_again() {
    let scratch = scratch();
    let settings = settings(Options::default());
    let changed = document("pell.txt", &["Everything is new. There are no boats."]);
    scratch.ingest(&[changed], &script(&[]), &settings).expect("nothing is called");
    let corpus = scratch.corpus();
    let passages = corpus.passages(Layer::Turn).unwrap();
    let texts: Vec<String> = passages.iter().map(|passage| corpus.passage_text(passage.id).unwrap()).collect();
    assert_eq!(texts, ["Everything is new. There are no boats."]);
    drop(corpus);
    assert_eq!(scratch.missing(&settings), Missing::default());
}
