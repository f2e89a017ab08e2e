//! `bench forms`: every reply is checked once, and an interrupted run resumes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{BoxFuture, Call, CallError, Caller, ModelInfo, OutputFormat, Reply, Scripted, ScriptedEmbedder, Tokens};
use eval::forms::{Forms, inspect};
use eval::qa::Backend;
use serde_json::Value;
use sources::{Kind, Section, Source};
use test_support::fill;

use crate::Files;
use crate::questions::block_on;

/// A model that fills the requested format, but sometimes violates it; closes after `most` calls.
struct Filler {
    script: Scripted,
    calls: AtomicUsize,
    most: usize,
    /// The format of every call, by step.
    forms: Mutex<Vec<(&'static str, OutputFormat)>>,
}

const CONTEXT_TOKENS: usize = 8192;

impl Filler {
    fn new(most: usize) -> Filler {
        Filler { script: Scripted::new(CONTEXT_TOKENS), calls: AtomicUsize::new(0), most, forms: Mutex::default() }
    }
}

impl Caller for Filler {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            // Yields first, as an engine would.
            tokio::task::yield_now().await;
            if self.calls.fetch_add(1, Ordering::Relaxed) >= self.most {
                self.calls.fetch_sub(1, Ordering::Relaxed);
                return Err(CallError::Closed);
            }
            self.forms.lock().unwrap().push((call.step, call.output_format.clone()));
            let reply = if call.step == "gam.info_check" { "Enough.".into() } else { fill::reply(&call) };
            Scripted::new(CONTEXT_TOKENS).answer(call.step, reply).call(call).await
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.script.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}

fn sources() -> Vec<Source> {
    let text = "Ada Brook kept the lighthouse at Pell. In 1911 she married the boat builder Tom Reed.".to_owned();
    let section = Section { span: 0..text.len(), title: None, time: None, turns: Vec::new() };
    vec![Source {
        path: "pell.txt".into(),
        kind: Kind::Text,
        title: None,
        text,
        encoding: None,
        sections: vec![section],
    }]
}

/// At least 60 replies, and the reported progress.
fn run(filler: &Filler, folder: Option<&Path>) -> (eval::Result<Forms>, Vec<usize>) {
    let machine = Backend { model: "filler", caller: filler, embedder: &ScriptedEmbedder };
    let mut told = Vec::new();
    let found = block_on(inspect(&sources(), 60, machine, folder, &mut |done| told.push(done)));
    (found, told)
}

#[test]
fn a_run_that_is_cut_off_inspects_every_reply_once() {
    let whole = Filler::new(usize::MAX);
    let (expect, told) = run(&whole, None);
    let expect = expect.unwrap();
    let total = expect.total();
    assert!(total.endings.calls >= 60 && told == (1..=total.endings.calls).collect::<Vec<_>>(), "{told:?}");
    assert_eq!(total.good + total.wrong.len(), total.endings.calls);
    assert!(total.wrong.iter().any(|wrong| wrong.starts_with("gam.info_check: ")), "{:?}", total.wrong);

    let files = Files::new(&[]);
    let folder = files.folder();
    let mut calls = 0;
    for most in [1, 5, 17, 2, usize::MAX] {
        let filler = Filler::new(most);
        let (found, told) = run(&filler, Some(folder));
        assert_eq!(found.is_ok(), most == usize::MAX);
        calls += filler.calls.load(Ordering::Relaxed);
        let lines = fs::read_to_string(folder.join("verdicts.jsonl")).unwrap();
        assert!(told.last().is_none_or(|last| *last == lines.lines().count()), "{told:?}");
        if let Ok(found) = found {
            assert_eq!(found, expect);
            assert_eq!(lines.lines().count(), total.endings.calls);
            break;
        }
        // The state after a kill: half a line, and a verdict whose reply was not received.
        let mut transcript = fs::OpenOptions::new().append(true).open(folder.join("transcript.jsonl")).unwrap();
        transcript.write_all(b"{\"half\": ").unwrap();
    }
    // Equal concurrent calls are all answered, later ones are not.
    assert!(calls <= whole.calls.load(Ordering::Relaxed), "no call twice: {calls}");
}

#[test]
fn every_form_of_the_methods_is_asked_for() {
    let filler = Filler::new(usize::MAX);
    let steps = run(&filler, None).0.unwrap().steps;
    for step in [
        "gam.plan",
        "gam.integrate",
        "gam.info_check",
        "memcot.zoom_in",
        "memcot.zoom_out",
        "memcot.judge",
        "memcot.extract",
        "memcot.glean",
        "memcot.keywords",
        "comorag.entities",
        "comorag.triples",
        "comorag.filter",
        "comorag.answer",
        "mindgraph.build",
        "mindgraph.answer",
    ] {
        assert!(steps.contains_key(step), "{step} is not among {:?}", steps.keys());
    }
    // An answer of ComoRAG has another format for a question with options.
    let forms = filler.forms.into_inner().unwrap();
    let chosen = |(step, output_format): &(&str, OutputFormat)| match output_format {
        OutputFormat::Json(schema) => {
            (*step == "comorag.answer").then(|| schema["properties"].get("options_analysis").is_some())
        }
        _ => None,
    };
    let chosen: Vec<bool> = forms.iter().filter_map(chosen).collect();
    assert!(chosen.contains(&true) && chosen.contains(&false), "{chosen:?}");
}

#[test]
fn a_verdict_without_its_reply_counts_once() {
    let files = Files::new(&[]);
    let folder = files.folder();
    assert!(run(&Filler::new(9), Some(folder)).0.is_err());
    let path = folder.join("transcript.jsonl");
    let transcript = fs::read_to_string(&path).unwrap();
    // The last checked reply is lost.
    let lines: Vec<&str> = transcript.lines().collect();
    let verdicts = fs::read_to_string(folder.join("verdicts.jsonl")).unwrap();
    let last: Value = serde_json::from_str(verdicts.lines().last().unwrap()).unwrap();
    let kept: Vec<&str> = lines.iter().copied().filter(|line| !line.contains(last["key"].as_str().unwrap())).collect();
    fs::write(&path, kept.join("\n") + "\n").unwrap();
    let found = run(&Filler::new(usize::MAX), Some(folder)).0.unwrap();
    assert_eq!(found, run(&Filler::new(usize::MAX), None).0.unwrap());
}
