//! What must be there before a question is asked, and what is said when it is not.

use calls::Scripted;
use memory::{MemoryError, Method, Missing, Settings};

use crate::scratch::{CONTEXT_TOKENS, Scratch, document, script};

fn settings(method: Method) -> Settings {
    Settings { method, ..Settings::default() }
}

const METHODS: [Method; 3] = [Method::Gam, Method::Rag, Method::Direct];

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

/// Asks by a method; `want` are the pages that are not ready.
fn check(scratch: &Scratch, method: Method, want: usize) {
    let caller =
        script(&[("answer", "Yes."), ("gam.plan", "none"), ("gam.follow_up", "none"), ("gam.integrate", "none")]);
    match scratch.ask("Who keeps the lamp?", &caller, &settings(method)).answer {
        Err(error @ MemoryError::NotReady { .. }) => {
            let said = format!("{want} of 2 pages of corpus scratch are not ready for {method}");
            assert_eq!(error.to_string(), said);
            let MemoryError::NotReady { settings: asked, .. } = error else { return };
            assert_eq!(*asked, settings(method));
        }
        Ok(_) => assert_eq!(want, 0, "{method}"),
        Err(other) => panic!("{method}: {other}"),
    }
}

#[test]
fn pages_without_vectors_or_abstracts_are_not_passed_over() {
    let scratch = Scratch::new();
    let source = document("lamp.txt", &["Ada keeps the lamp.", "Tom builds boats."]);
    // The direct method needs nothing but the text.
    scratch.ingest(&[source], &script(&[]), &settings(Method::Direct)).expect("nothing is called");
    check(&scratch, Method::Direct, 0);
    check(&scratch, Method::Rag, 2);
    check(&scratch, Method::Gam, 2);
    assert_eq!(scratch.missing(&settings(Method::Gam)), Missing { calls: 2, vectors: 2 });
    assert_eq!(scratch.missing(&settings(Method::Rag)), Missing { calls: 0, vectors: 2 });
    assert_eq!(scratch.missing(&settings(Method::Direct)), Missing { calls: 0, vectors: 0 });

    scratch.ingest(&[], &script(&[]), &settings(Method::Rag)).expect("an embedder is all that rag needs");
    check(&scratch, Method::Rag, 0);
    check(&scratch, Method::Gam, 2);

    // One page is memorised, then the engine stops: nothing is embedded for GAM yet.
    let stops =
        Scripted::new(CONTEXT_TOKENS).answer("gam.memorize", "Ada.").fail("gam.memorize", calls::CallError::Closed);
    scratch.ingest(&[], &stops, &settings(Method::Gam)).expect_err("the second call fails");
    assert_eq!(scratch.missing(&settings(Method::Gam)), Missing { calls: 1, vectors: 2 });
    check(&scratch, Method::Gam, 2);

    scratch.ingest(&[], &script(&[("gam.memorize", "Tom.")]), &settings(Method::Gam)).expect("all is scripted");
    check(&scratch, Method::Gam, 0);
    assert_eq!(scratch.missing(&settings(Method::Gam)), Missing::default());
}
