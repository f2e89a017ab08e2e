//! An ingest that is killed at any moment resumes, and ends with the same result as an uninterrupted ingest.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use calls::Call;
use memory::{Missing, Settings};
use sources::Source;
use store::{Corpora, Error, Layer};

use crate::haystack::Random;
use crate::rules::{Embeds, Rules};
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, document, input};

/// The folder of the child process that is killed.
pub const FOLDER: &str = "MEMLOCAL_MEMORY_CRASH";
const TEST: &str = "crash::a_killed_ingest_repeats_no_call_whose_reply_was_stored";
const LOG: &str = "calls.log";
pub const EMBED: &str = "embed";
pub const KILLS: usize = 24;
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

/// Records a request before it is answered.
pub fn write_down(folder: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(folder.join(LOG));
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.expect("a folder for temporary files takes a file");
}

pub fn log(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join(LOG)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The state of the memory: the texts of the pages that have an abstract, and the number of pages without one.
fn remembered(folder: &Path) -> Result<(BTreeSet<String>, Missing), Box<dyn std::error::Error>> {
    let corpus = match Corpora::new(folder).open("scratch") {
        Err(Error::UnknownCorpus { .. }) => return Ok(<_>::default()),
        opened => opened?,
    };
    corpus.verify()?;
    let notes = corpus.notes_named(Layer::Page, "abstract")?;
    let texts = notes.iter().map(|note| corpus.passage_text(note.passage)).collect::<Result<_, _>>()?;
    drop(corpus);
    Ok((texts, Scratch::at(folder).missing(&Settings::default())))
}

#[test]
fn a_killed_ingest_repeats_no_call_whose_reply_was_stored() -> Outcome {
    if let Some(folder) = env::var_os(FOLDER) {
        return ingest(Path::new(&folder));
    }
    let whole = Scratch::new();
    ingest(whole.folder())?;
    let expected = whole.corpus().digest()?;
    let mut random = Random::new(7);
    let (mut kills, mut runs) = (0, 0);
    while kills < KILLS {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        loop {
            let (stored, missing) = remembered(folder)?;
            let before = log(folder).len();
            let moment = Duration::from_micros(random.below(4000) as u64);
            let killed = killed(TEST, folder, before + random.below(9), moment)?;
            let log = log(folder);
            let calls = &log[before..];
            let repeated: Vec<&String> = calls.iter().filter(|call| stored.contains(*call)).collect();
            assert!(repeated.is_empty(), "asked again although the reply was stored: {repeated:?}");
            if !stored.is_empty() {
                let embedded = calls.iter().filter(|call| *call == EMBED).count();
                assert!(embedded <= missing.vectors, "{embedded} pages embedded, {} had no vectors", missing.vectors);
            }
            if !killed {
                break;
            }
            kills += 1;
        }
        runs += 1;
        assert_eq!(scratch.corpus().digest()?, expected);
        assert_eq!(scratch.missing(&Settings::default()), Missing::default());
    }
    println!("killed {kills} times in {runs} runs");
    Ok(())
}

/// Runs the child process of a test until it has made this many calls in total, and a moment longer; returns whether it
/// had to be killed.
pub fn killed(test: &str, folder: &Path, calls: usize, moment: Duration) -> Result<bool, std::io::Error> {
    let mut command = Command::new(env::current_exe()?);
    let mut child = command.args(["--exact", test]).env(FOLDER, folder).stdout(Stdio::null()).spawn()?;
    while log(folder).len() < calls && child.try_wait()?.is_none() {
        thread::sleep(Duration::from_micros(200));
    }
    thread::sleep(moment);
    if let Some(status) = child.try_wait()? {
        assert!(status.success(), "the ingest failed by itself");
        return Ok(false);
    }
    child.kill()?;
    Ok(child.wait()?.code().is_none())
}
