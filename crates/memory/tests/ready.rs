//! What a question requires before it is asked, and the error if it is missing.

use calls::Scripted;
use memory::direct::Direct;
use memory::gam::Gam;
use memory::rag::Rag;
use memory::{MemoryError, Method, Missing, Settings};

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
