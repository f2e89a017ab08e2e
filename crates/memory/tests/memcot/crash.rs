//! A build of the graph that is killed at any moment resumes, and ends with the same graph as an uninterrupted build.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::time::Duration;

use calls::Call;
use memory::Missing;
use sources::Source;
use store::{Corpora, Error, Layer};

use super::graph::{builder, lightrag};
use crate::crash::{EMBED, FOLDER, KILLS, killed, log, write_down};
use crate::haystack::Random;
use crate::rules::{Embeds, Rules};
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, conversation, input};

const TEST: &str = "memcot::crash::a_killed_build_repeats_no_call_whose_reply_was_stored";
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
fn stored(folder: &Path) -> Result<BTreeSet<String>, Box<dyn std::error::Error>> {
    let corpus = match Corpora::new(folder).open("scratch") {
        Err(Error::UnknownCorpus { .. }) => return Ok(<_>::default()),
        opened => opened?,
    };
    corpus.verify()?;
    let mut stored = BTreeSet::new();
    for (step, name) in STEPS {
        for note in corpus.notes_named(Layer::Turn, name)? {
            stored.insert(format!("{step} {}", corpus.passage_text(note.passage)?));
        }
    }
    Ok(stored)
}

#[test]
fn a_killed_build_repeats_no_call_whose_reply_was_stored() -> Outcome {
    if let Some(folder) = env::var_os(FOLDER) {
        return build(Path::new(&folder));
    }
    let whole = Scratch::new();
    build(whole.folder())?;
    let expected = whole.corpus().digest()?;
    assert_eq!(log(whole.folder()).iter().filter(|line| *line != EMBED).count(), 80);
    let mut random = Random::new(11);
    let (mut kills, mut runs) = (0, 0);
    while kills < KILLS {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        loop {
            let stored = stored(folder)?;
            let before = log(folder).len();
            let moment = Duration::from_micros(random.below(4000) as u64);
            let killed = killed(TEST, folder, before + random.below(40), moment)?;
            let log = log(folder);
            let repeated: Vec<&String> = log[before..].iter().filter(|call| stored.contains(*call)).collect();
            assert!(repeated.is_empty(), "asked again although the reply was stored: {repeated:?}");
            if !killed {
                break;
            }
            kills += 1;
        }
        runs += 1;
        assert_eq!(scratch.corpus().digest()?, expected);
        assert_eq!(scratch.missing(&lightrag()), Missing::default());
    }
    println!("killed {kills} times in {runs} runs");
    Ok(())
}
