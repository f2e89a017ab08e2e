//! A build of the graph that is killed at any moment resumes, and ends with the same graph as an uninterrupted build.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use calls::Call;
use sources::Source;
use store::{Corpus, Layer};

use super::graph::{builder, lightrag};
use crate::killed::{EMBED, Killed, Stored, write_down};
use crate::rules::{Embeds, Rules};
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, conversation, input};

const STEPS: [(&str, &str); 2] = [("memcot.extract", "lightrag.extract/1"), ("memcot.glean", "lightrag.glean/1")];

fn source() -> Source {
    let names = ["Ann", "Bob", "Rex", "Pell", "Paris", "dog"];
    let said: Vec<String> =
        (0..40).map(|number| format!("{} and {} {number}.", names[number % 6], names[number / 6 % 6])).collect();
    let said: Vec<(&str, &str)> = said.iter().map(|words| ("Ann", words.as_str())).collect();
    conversation("talk.json", &said)
}

/// The child process that is killed: every call and every text to embed is recorded before it is answered.
fn build(folder: &Path) -> Outcome {
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        write_down(folder, &format!("{} {}", call.step, input(call, "TEXT")));
        builder(call)
    });
    let embedder = Embeds(|texts: &[String]| {
        texts.iter().for_each(|_| write_down(folder, EMBED));
        Ok(())
    });
    Scratch::at(folder).ingest_with(&[source()], &caller, &embedder, &lightrag())?;
    Ok(())
}

/// The calls whose replies are stored, as recorded.
fn stored(corpus: &Corpus) -> Result<Stored, Box<dyn Error>> {
    let mut calls = BTreeSet::new();
    for (step, name) in STEPS {
        for note in corpus.notes_named(Layer::Turn, name)? {
            calls.insert(format!("{step} {}", corpus.passage_text(note.passage)?));
        }
    }
    Ok(Stored { calls, vectors: None })
}

#[test]
fn a_killed_build_repeats_no_call_whose_reply_was_stored() -> Outcome {
    let killed = Killed {
        test: "memcot::crash::a_killed_build_repeats_no_call_whose_reply_was_stored",
        kills: 24,
        seed: 11,
        moments: (40, 4000),
        calls: Some(80),
        settings: &lightrag(),
        build: &build,
        stored: &stored,
    };
    killed.check()
}
