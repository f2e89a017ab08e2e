//! What a question requires before it is asked, and the error if it is missing.

use calls::Scripted;
use memory::comorag::Comorag;
use memory::direct::Direct;
use memory::gam::Gam;
use memory::rag::Rag;
use memory::{MemoryError, Method, Missing, Prepared, Settings};

use crate::scratch::{CONTEXT_TOKENS, Scratch, document, script};

fn settings(method: &'static dyn Method) -> Settings {
    Settings { method, ..Settings::default() }
}

const METHODS: [&dyn Method; 3] = [&Gam, &Rag, &Direct];

#[test]
fn an_empty_question_is_refused() {
    let scratch = Scratch::lighthouse();
    for method in METHODS {
        for question in ["", " \n\t"] {
            let asked = scratch.ask(question, &script(&[]), &settings(method));
            assert!(matches!(asked.answer, Err(MemoryError::EmptyQuestion)), "{method}: {question:?}");
        }
    }
}

#[test]
fn an_empty_corpus_is_refused() {
    let scratch = Scratch::new();
    drop(scratch.writer());
    for method in METHODS {
        let asked = scratch.ask("Who?", &script(&[]), &settings(method));
        match asked.answer {
            Err(MemoryError::EmptyCorpus { corpus }) => assert_eq!(corpus, "scratch"),
            other => panic!("{method}: {other:?}"),
        }
    }
}

/// Asks by a method; `want` lists the pages that are not ready.
fn check(scratch: &Scratch, method: &'static dyn Method, want: usize) {
    let caller =
        script(&[("answer", "Yes."), ("gam.plan", "none"), ("gam.follow_up", "none"), ("gam.integrate", "none")]);
    match scratch.ask("Who keeps the lamp?", &caller, &settings(method)).answer {
        Err(error @ MemoryError::NotReady { .. }) => {
            let said = format!("{want} of 2 pages of corpus scratch are not ready for {method}");
            assert_eq!(error.to_string(), said);
            let MemoryError::NotReady { method: asked, .. } = error else { return };
            assert_eq!(asked, method.name());
        }
        Ok(_) => assert_eq!(want, 0, "{method}"),
        Err(other) => panic!("{method}: {other}"),
    }
}

#[test]
fn pages_without_vectors_or_abstracts_are_not_passed_over() {
    let scratch = Scratch::new();
    let source = document("lamp.txt", &["Ada keeps the lamp.", "Tom builds boats."]);
    // The direct method requires only the text.
    scratch.ingest(&[source], &script(&[]), &settings(&Direct)).expect("nothing is called");
    check(&scratch, &Direct, 0);
    check(&scratch, &Rag, 2);
    check(&scratch, &Gam, 2);
    assert_eq!(scratch.missing(&settings(&Gam)), Missing { calls: 2, vectors: 2 });
    assert_eq!(scratch.missing(&settings(&Rag)), Missing { calls: 0, vectors: 2 });
    assert_eq!(scratch.missing(&settings(&Direct)), Missing { calls: 0, vectors: 0 });

    scratch.ingest(&[], &script(&[]), &settings(&Rag)).expect("an embedder is all that rag needs");
    check(&scratch, &Rag, 0);
    check(&scratch, &Gam, 2);

    // One page is memorised, then the engine stops: no vectors are stored for GAM yet.
    let stops =
        Scripted::new(CONTEXT_TOKENS).answer("gam.memorize", "Ada.").fail("gam.memorize", calls::CallError::Closed);
    scratch.ingest(&[], &stops, &settings(&Gam)).expect_err("the second call fails");
    assert_eq!(scratch.missing(&settings(&Gam)), Missing { calls: 1, vectors: 2 });
    check(&scratch, &Gam, 2);

    scratch.ingest(&[], &script(&[("gam.memorize", "Tom.")]), &settings(&Gam)).expect("all is scripted");
    check(&scratch, &Gam, 0);
    assert_eq!(scratch.missing(&settings(&Gam)), Missing::default());
}

#[test]
fn an_answer_from_what_is_ready_says_how_much_that_is() {
    let scratch = Scratch::new();
    let source = document("lamp.txt", &["Ada keeps the lamp.", "Tom builds boats."]);
    scratch.ingest(&[source], &script(&[]), &settings(&Rag)).expect("an embedder is all that rag needs");
    let caller =
        script(&[("answer", "Ada."), ("gam.plan", "none"), ("gam.integrate", "none"), ("gam.follow_up", "none")]);
    let ask = |method| {
        let asked = scratch.ask_what_is_ready("Who keeps the lamp?", &caller, &settings(method), "it is late");
        asked.answer.expect("something is ready")
    };
    let (rag, gam, comorag) = (ask(&Rag), ask(&Gam), ask(&Comorag));
    assert_eq!((rag.prepared, rag.note), (None, None));
    assert_eq!((gam.method, gam.prepared), ("gam", Some(Prepared { ready: 0, of: 2 })));
    let said = "0 of 2 pages are prepared for gam, so the answer is from what is ready: it is late";
    assert_eq!(gam.note.as_deref(), Some(said));
    assert_eq!(comorag.method, "rag");
    let note = comorag.note.expect("not all is ready");
    assert!(note.ends_with("pages are prepared for comorag, so rag answered instead: it is late"), "{note}");
    assert_eq!(comorag.citations[0].quote, "Ada keeps the lamp.");
}

#[test]
fn pages_without_vectors_are_found_by_their_words() {
    let scratch = Scratch::new();
    let source = document("lamp.txt", &["Ada keeps the lamp.", "Tom builds boats."]);
    scratch.ingest(&[source], &script(&[]), &settings(&Direct)).expect("nothing is called");
    let asked =
        scratch.ask_what_is_ready("Who keeps the lamp?", &script(&[("answer", "Ada.")]), &settings(&Rag), "late");
    let answer = asked.answer.expect("words are there");
    assert_eq!((answer.prepared, answer.method), (Some(Prepared { ready: 0, of: 2 }), "rag"));
    assert_eq!(answer.citations[0].quote, "Ada keeps the lamp.");
}
