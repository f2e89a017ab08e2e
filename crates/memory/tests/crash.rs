//! An ingest that is killed at any moment resumes, and ends with the same result as an uninterrupted ingest.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use calls::{Call, Scripted, ScriptedEmbedder};
use memory::{Settings, Trace};
use sources::Source;
use store::{Corpus, Layer};

use crate::killed::{EMBED, Killed, Stored, write_down};
use crate::rules::{Embeds, Rules};
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, document, input, session};

const DOCUMENTS: usize = 3;
const PAGES: usize = 8;

fn sources() -> Vec<Source> {
    let source = |number: usize| {
        let pages: Vec<String> = (0..PAGES).map(|page| format!("Message {number}.{page} says little.")).collect();
        document(&format!("{number}.txt"), &pages.iter().map(String::as_str).collect::<Vec<_>>())
    };
    (0..DOCUMENTS).map(source).collect()
}

/// The child process that is killed: every call and every text to embed is recorded before it is answered.
fn ingest(folder: &Path) -> Outcome {
    let write_down = |line: &str| write_down(folder, line);
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        let message = input(call, "INPUT_MESSAGE");
        write_down(&message);
        // The reply depends on the memo, so that a torn memo is detected.
        format!("After {} lines: {message}", input(call, "MEMORY_CONTEXT").lines().count())
    });
    let embedder = Embeds(|texts: &[String]| {
        texts.iter().for_each(|_| write_down(EMBED));
        Ok(())
    });
    Scratch::at(folder).ingest_with(&sources(), &caller, &embedder, &Settings::default())?;
    Ok(())
}

/// The texts of the pages that have an abstract, and the number of missing vectors once all pages are stored.
fn stored(corpus: &Corpus) -> Result<Stored, Box<dyn Error>> {
    let notes = corpus.notes_named(Layer::Page, "abstract")?;
    let calls: BTreeSet<String> =
        notes.iter().map(|note| corpus.passage_text(note.passage)).collect::<Result<_, _>>()?;
    let (caller, settings, trace) = (Scripted::new(CONTEXT_TOKENS), Settings::default(), Trace::off());
    let missing = memory::missing(corpus, &session(&caller, &ScriptedEmbedder, &settings, &trace))?;
    let vectors = (!calls.is_empty()).then_some(missing.vectors);
    Ok(Stored { calls, vectors })
}

#[test]
fn a_killed_ingest_repeats_no_call_whose_reply_was_stored() -> Outcome {
    let ingest = Killed {
        test: "crash::a_killed_ingest_repeats_no_call_whose_reply_was_stored",
        kills: 24,
        seed: 7,
        moments: (9, 4000),
        calls: Some(DOCUMENTS * PAGES),
        settings: &Settings::default(),
        build: &ingest,
        stored: &stored,
    };
    ingest.check()
}
