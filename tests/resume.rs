//! Runs that are stopped, and runs that find another one in progress.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use store::Corpora;

use test_support::home::{Home, Said, calls, can, memlocal};
use test_support::story::{PAGE_TOKENS, STORY};

#[test]
fn a_stopped_run_resumes_where_it_was() {
    if !can("env", &[DEFAULT_SIGNAL, "true"], "runs that are stopped") {
        return;
    }
    let Some(home) = Home::new("stopped") else { return };
    home.write("story.txt", STORY);
    let ingest = |paths: &[&'static str], trace: &'static str| {
        let to_corpus = ["--corpus", "story", "--method", "gam", "--page-tokens", PAGE_TOKENS, "--trace", trace];
        [&["ingest"], paths, &to_corpus].concat()
    };

    let interrupted = stop(&home, &ingest(&["story.txt"], "first"), "-INT");
    let hint = "error: interrupted\nhint: finished work is stored; the same command resumes it\n";
    assert!(interrupted.code == 130 && interrupted.err.ends_with(hint), "{interrupted:?}");
    let first = abstracts(&home);

    let killed = stop(&home, &ingest(&["story.txt"], "second"), "-KILL");
    assert_eq!((killed.code, killed.out.as_str()), (-1, ""));
    let second = abstracts(&home);
    assert!(!first.is_empty() && second.len() > first.len() && second.starts_with(&first), "{first:?} {second:?}");

    let pages = pages(&home);
    let asked = ["ask", "Who?", "--corpus", "story", "--method", "gam", "--max-iterations", "1", "--trace", "third"];
    let finished = home.run(&asked);
    assert!(finished.code == 0 && !finished.out.contains("note:"), "a question prepares the rest: {finished:?}");
    assert!(finished.err.starts_with("memorising: "), "{}", finished.err);
    assert!(abstracts(&home).starts_with(&second), "finished pages are as they were");
    let calls = ["first", "second", "third"].map(|trace| {
        let trace = home.trace(trace);
        let mut calls = calls(&trace, "gam.memorize");
        // A reply that was cut is requested once more with the same prompt.
        calls.dedup_by_key(|call| &call["prompt"]);
        calls.len()
    });
    assert_eq!(calls[2], pages - second.len(), "{calls:?}");
    // A call is in the trace a moment before its page is finished.
    assert!(calls[0] - first.len() <= 1 && calls[1] - (second.len() - first.len()) <= 1, "{calls:?}");
}

#[test]
fn a_corpus_in_use_is_refused_with_who_uses_it() {
    let Some(home) = Home::new("in-use") else { return };
    home.write("story.txt", STORY);
    let words = ["ingest", "story.txt", "--corpus", "story", "--method", "gam", "--page-tokens", PAGE_TOKENS];
    let running = Running(start(&home, home.command(&words)));
    let id = running.0.id();
    send("-STOP", &running.0);
    for words in [&["ingest", "story.txt", "--corpus", "story"][..], &["corpus", "rm", "story", "--yes"]] {
        let said = home.run(words);
        let error = format!("error: the corpus `story` is in use by process {id}\nhint: wait until `");
        assert!(said.code == 1 && said.err.starts_with(&error), "{words:?}: {said:?}");
        assert!(said.err.contains("ingest story.txt --corpus story"), "{}", said.err);
        assert!(said.err.ends_with("` has ended, or stop it; its finished work is stored\n"), "{}", said.err);
    }
    let asked = home.run(&["ask", "Who?", "--corpus", "story", "--method", "rag"]);
    let note =
        "pages are prepared for rag, so the answer is from what is ready: the corpus `story` is in use by process";
    assert!(asked.code == 0 && asked.out.contains(note), "{asked:?}");
    let listed = home.get(&["corpus", "list"]);
    assert!(listed.contains("\nstory "), "corpora are listed during a run: {listed}");
    assert_eq!(home.run(&["corpus", "show", "story"]).code, 0, "nor does who reads");
    drop(running);
    assert_eq!(home.run(&["corpus", "rm", "story", "--yes"]).code, 0, "the lock ends with its process");
}

/// A child process that is stopped when its test ends, for whatever reason.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a command and waits until one more page of the corpus `story` is finished.
fn start(home: &Home, mut command: Command) -> Child {
    let finished = || {
        let listed = Corpora::new(home.data()).list().unwrap_or_default();
        listed.into_iter().find_map(|listing| listing.counts.ok()).map_or(0, |counts| counts.passages - counts.pending)
    };
    let before = finished();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while finished() <= before {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        sleep(Duration::from_millis(5));
    }
    child
}

/// These tests may run with interrupt signals ignored, and child processes inherit that.
const DEFAULT_SIGNAL: &str = "--default-signal=INT";

/// Starts a command and sends it a signal after one page.
fn stop(home: &Home, words: &[&str], signal: &str) -> Said {
    let mut command = home.program("env");
    command.arg(DEFAULT_SIGNAL).args(memlocal()).args(words);
    let child = start(home, command);
    send(signal, &child);
    home.said(child.wait_with_output().unwrap())
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// The abstracts on the disk, in the order of their pages.
fn abstracts(home: &Home) -> Vec<String> {
    let shown = home.get(&["corpus", "show", "story", "--pages"]);
    shown.lines().filter(|line| line.starts_with("  abstract ")).map(ToOwned::to_owned).collect()
}

fn pages(home: &Home) -> usize {
    let shown = home.get(&["corpus", "show", "story", "--pages"]);
    shown.lines().filter(|line| line.starts_with("page ")).count()
}
