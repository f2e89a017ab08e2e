//! Every prompt byte by byte, in both layouts, with the events beside it in the trace; and a whole run of GAM as JSON: the
//! lines of its trace and its answer, as files and APIs have them.
//!
//! The files in `tests/golden/` are compared with the current output; `MEMLOCAL_BLESS=1 cargo test -p memory golden` rewrites
//! them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use calls::{OutputFormat, Scripted};
use memory::comorag::Comorag;
use memory::direct::Direct;
use memory::gam::OutputForm;
use memory::memcot::{Memcot, MemcotStore};
use memory::mindgraph::Mindgraph;
use memory::rag::Rag;
use memory::{Answer, Event, Layout, Method, Settings, comorag, gam, mindgraph};
use serde::Serialize;
use sources::Source;

use crate::scratch::{CONTEXT_TOKENS, Scratch, document, sessions};

/// Two pages, two rounds, every agent; the judge's first reply is invalid.
fn gam(layout: Layout) -> (Scripted, Settings) {
    let caller = Scripted::new(CONTEXT_TOKENS)
        .answer("gam.memorize", "Ada Brook keeps the lighthouse at Pell.")
        .answer("gam.memorize", "Ada Brook married Tom Reed.")
        .answer("gam.plan", r#"{"info_needs":["Whom did she marry?"],"tools":["keyword","vector"],"keyword_collection":["lighthouse"],"vector_queries":["Ada Brook married"],"page_index":[]}"#)
        .answer("gam.plan", r#"{"info_needs":["In which year?"],"tools":["page_index"],"keyword_collection":[],"vector_queries":[],"page_index":[2]}"#)
        .answer("gam.integrate", r#"{"content":"Ada Brook married Tom Reed.","sources":[2]}"#)
        .answer("gam.integrate", r#"{"content":"Ada Brook married the boat builder Tom Reed in 1911.","sources":[2]}"#)
        .answer("gam.info_check", "No, the year is missing.")
        .answer("gam.info_check", r#"{"enough":false}"#)
        .answer("gam.info_check", r#"{"enough":true}"#)
        .answer("gam.follow_up", r#"{"new_requests":["In which year did Ada Brook marry Tom Reed?","Where?"]}"#)
        .answer("answer", "She married Tom Reed in 1911.");
    let settings = Settings {
        layout,
        seed: 11,
        ..Settings::default().with_options(gam::Options { output: OutputForm::Pages, ..gam::Options::default() })
    };
    (caller, settings)
}

/// A case may have more than one attempt.
const STORY: [&str; 5] = [
    "Ada Brook has kept the lighthouse at Pell for forty years.",
    "In 1911 Ada Brook married the boat builder Tom Reed, who had mended the harbour wall after the storm.",
    "The new lamp came from Paris, and it cost the harbour nine hundred crowns in the spring of 1913.",
    "Their daughter Jane learned to sail before she could read, and she never lost a boat in any weather.",
    "When the war came the light was put out, and Ada Brook sat in the dark and listened to the sea.",
];

/// A failed attempt, a cycle, an answer; with or without options.
fn comorag(layout: Layout, choices: &[&str]) -> String {
    let attempt = |answer: &str| {
        let options = if choices.is_empty() { "" } else { r#""options_analysis":["Bob is not named."],"# };
        format!(
            r#"{{"content_understanding":"Ada married.","question_analysis":["who","when"],{options}"final_answer":"{answer}"}}"#
        )
    };
    let caller = Scripted::new(CONTEXT_TOKENS)
        .answer("comorag.entities", r#"{"named_entities":["Ada Brook","Tom Reed","1911"]}"#)
        .answer(
            "comorag.triples",
            r#"{"triples":[["Ada Brook","married","Tom Reed"],["Ada Brook","kept","the lighthouse"]]}"#,
        )
        .answer("comorag.narrate", "Ada Brook keeps the lighthouse and marries Tom Reed.")
        .answer("comorag.summarize", "Life at the lighthouse of Pell.")
        .answer("comorag.filter", r#"{"fact":[1]}"#)
        .answer("comorag.answer", attempt("*"))
        .answer("comorag.answer", attempt(if choices.is_empty() { "Tom Reed, in 1911." } else { "[B]" }))
        .answer("comorag.encode", r#"{"key_findings":["Ada Brook married Tom Reed.","It was in 1911."]}"#)
        .answer("comorag.probe", r#"{"probe_1":"Ada Brook's husband","probe_2":"The wedding at Pell","probe_3":""}"#)
        .answer("comorag.fuse", "Ada Brook married Tom Reed in 1911.");
    let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
    let comorag = comorag::Options { chunk_tokens: 12, context_tokens: 130, ..comorag::Options::default() };
    transcript(
        &STORY,
        &caller,
        &Settings { method: &Comorag, layout, choices, ..Settings::default().with_options(comorag) },
    )
}

/// The one call of a baseline.
fn baseline(method: &'static dyn Method, layout: Layout) -> String {
    let caller = Scripted::new(CONTEXT_TOKENS).answer("answer", "She married Tom Reed in 1911.");
    transcript(&PAGES, &caller, &Settings { method, layout, ..Settings::default() })
}

/// Two blocks, every tool and the reports; one reply of each kind is invalid at first.
fn mindgraph(layout: Layout) -> String {
    let report = r#"{"title":"Ada Brook and Tom Reed","summary":"She married him.","rating":7,"rating_explanation":"It is all there is.","findings":[{"summary":"They married in 1911.","explanation":"The wedding says so."}]}"#;
    let caller = Scripted::new(CONTEXT_TOKENS)
        .answer("mindgraph.build", r#"{"operations":[{"op":"add_node","id":"ada_brook","type":"entity","content":"Keeper of the lighthouse at Pell.","src":"Ada Brook"}]}"#)
        .answer("mindgraph.build", "She married Tom Reed.")
        .answer("mindgraph.build", r#"{"operations":[{"op":"add_node","id":"tom_reed","type":"entity","content":"A boat builder.","src":"boat builder Tom Reed"},{"op":"add_edge","source":"ada_brook","target":"tom_reed","relation":"married","src":"married the boat-builder"},{"op":"delete_node","id":"wall"}]}"#)
        .answer("mindgraph.answer", r#"{"tool_calls":[{"tool":"lookup_source","node_id":"tom"},{"tool":"subgraph_summary","mode":"index"}]}"#)
        .answer("mindgraph.answer", r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"detail","subgraph_id":0},{"tool":"lookup_source","node_id":"tom_reed"}]}"#)
        .answer("mindgraph.answer", r#"{"answer":"She married Tom Reed in 1911.","cited_nodes":["tom_reed"],"confidence":"high"}"#)
        .answer("mindgraph.report", report);
    let mindgraph = mindgraph::Options {
        questions: vec![QUESTION.into()],
        block_tokens: Some(12),
        ..mindgraph::Options::default()
    };
    transcript(&PAGES, &caller, &Settings { method: &Mindgraph, layout, ..Settings::default().with_options(mindgraph) })
}

const QUESTION: &str = "Whom did the keeper of the lighthouse marry, and when?";

/// Two sessions, three steps, every agent: zoom-in finds nothing at first and its first reply is invalid, the judge
/// repeats a query, the responder does not know the answer, and no other query is left.
fn memcot(layout: Layout, store: MemcotStore) -> String {
    let keywords = r#"{"high_level_keywords":["marriage"],"low_level_keywords":["Ada","lighthouse"]}"#;
    let caller = Scripted::new(CONTEXT_TOKENS)
        .answer("memcot.extract", r#"{"entities":[{"name":"Ada","type":"Person","description":"keeps the lighthouse at Pell"}],"relations":[{"source":"Ada","target":"Tom Reed","keywords":"marriage","description":"married in 1911"}]}"#)
        .answer("memcot.glean", r#"{"entities":[{"name":"Pell","type":"Location","description":"has a lighthouse"}],"relations":[]}"#)
        .answer("memcot.keywords", keywords)
        .answer("memcot.zoom_in", "None of them helps.")
        .answer("memcot.zoom_in", r#"{"thinking":"Nobody marries.","missing_information":"whom she married","useful_ids":[]}"#)
        .answer("memcot.zoom_in", r#"{"thinking":"It names Tom.","missing_information":"the year","useful_ids":[6]}"#)
        .answer("memcot.zoom_out", r#"{"thinking":"The year is told.","thinking_choice":"It says 1911.","missing_information":"","useful_ids":[5]}"#)
        .answer("memcot.judge", r#"{"thinking":"Nothing is known.","useful_id":[],"can_answer":false,"action":"Delete","new_queries":["whom did the keeper of the lighthouse marry and when"]}"#)
        .answer("memcot.judge", r#"{"thinking":"Split it.","useful_id":[],"can_answer":false,"action":"Break","new_queries":["Ada married","Tom Reed"]}"#)
        .answer("memcot.judge", r#"{"thinking":"All is known.","useful_id":[5,6],"can_answer":true,"action":"Delete","new_queries":["wedding in 1911"]}"#)
        .answer("memcot.judge", r#"{"thinking":"All is known.","useful_id":[5],"can_answer":true,"action":"Delete","new_queries":[]}"#)
        .answer("memcot.respond", "No information available")
        .answer("memcot.respond", "unknown")
        .answer("answer", "She married Tom Reed in 1911.");
    let options = memory::memcot::Options { k: 3, window: 1, store, ..memory::memcot::Options::default() };
    let settings = Settings { method: &Memcot, layout, ..Settings::default().with_options(options) };
    let first = [("Bea", "Who keeps the lighthouse at Pell?"), ("Cal", "Ada has kept it for forty years.")];
    let second = [("Bea", "In 1911 there was a wedding."), ("Cal", "Yes, here is a photo: Ada and Tom Reed.")];
    let sessions =
        sessions("talk.json", &[("session_1", "8 May, 2023", &first), ("session_2", "9 June, 2023", &second)]);
    transcript_of(sessions, &caller, &settings)
}

const PAGES: [&str; 2] = [
    "Ada Brook has kept the lighthouse at Pell for forty years.",
    "In 1911 Ada Brook married the boat builder Tom Reed, who had mended the harbour wall.",
];

/// Memorises pages and asks.
fn transcript(pages: &[&str], caller: &Scripted, settings: &Settings) -> String {
    transcript_of(document("pell.txt", pages), caller, settings)
}

/// Memorises a source and asks; returns all events in their order and the answer.
fn run(source: Source, caller: &Scripted, settings: &Settings) -> (Vec<Event>, Answer) {
    let scratch = Scratch::new();
    let mut events = scratch.ingest(&[source], caller, settings).expect("all is scripted");
    let asked = scratch.ask(QUESTION, caller, settings);
    events.extend(asked.events);
    for event in &mut events {
        if let Event::Search { hits, .. } = event {
            // The last digits of a score depend on the processor.
            hits.iter_mut().for_each(|hit| hit.score = (hit.score * 1000.0).round() / 1000.0);
        }
    }
    (events, asked.answer.expect("the script is whole"))
}

/// All calls and other events of a run, and its answer.
fn transcript_of(source: Source, caller: &Scripted, settings: &Settings) -> String {
    let (events, answer) = run(source, caller, settings);
    let mut calls = caller.seen().into_iter();
    let mut text = String::new();
    for event in events {
        match event {
            Event::Call { step, agent, prompt, output, .. } => {
                let call = calls.next().expect("every call is in the trace once");
                assert_eq!(call.step, step);
                let (most, sampling) = (call.limits.max_output_tokens, call.sampling);
                let drawn = format!("temperature {}, seed {}", sampling.temperature, sampling.seed);
                let _ = writeln!(text, "#### {step} by the {agent}, at most {most} tokens, {drawn}\n{prompt}");
                if let OutputFormat::Json(schema) = call.output_format {
                    let _ = writeln!(text, "#### must match\n{schema}\n");
                }
                let _ = writeln!(text, "#### reply\n{output}\n");
            }
            other => {
                let _ = writeln!(text, "#### event\n{}\n", json(&other));
            }
        }
    }
    assert!(calls.next().is_none(), "every call is in the trace");
    let _ = writeln!(text, "#### answer\n{}\n{}", answer.answer, json(&answer.citations));
    text
}

/// The trace of a run, a line for each event, and its answer in the last line.
fn json_lines((events, answer): &(Vec<Event>, Answer)) -> String {
    events.iter().map(|event| json(event) + "\n").chain([json(answer) + "\n"]).collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}

fn check(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("MEMLOCAL_BLESS").is_some() {
        return fs::write(&path, found).expect("the golden folder can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let differ = golden.lines().zip(found.lines()).position(|(golden, found)| golden != found);
    let line = differ.unwrap_or_else(|| golden.lines().count().min(found.lines().count()));
    let at = |text: &str| text.lines().nth(line).unwrap_or("nothing").to_owned();
    assert!(golden == found, "{name}, line {}\n golden: {}\n  found: {}", line + 1, at(&golden), at(found));
}

#[test]
fn prompts_are_what_they_were() {
    for layout in [Layout::Paper, Layout::SharedFirst] {
        let (caller, settings) = gam(layout);
        let found = [
            ("gam", transcript(&PAGES, &caller, &settings)),
            ("comorag", comorag(layout, &[])),
            ("comorag.choice", comorag(layout, &["Bob Hill", "Tom Reed"])),
            ("mindgraph", mindgraph(layout)),
            ("rag", baseline(&Rag, layout)),
            ("direct", baseline(&Direct, layout)),
            ("memcot", memcot(layout, MemcotStore::Hybrid)),
            ("memcot-lightrag", memcot(layout, MemcotStore::Lightrag)),
        ];
        found.iter().for_each(|(name, found)| check(&format!("{name}.{layout}.txt"), found));
    }
}

#[test]
fn the_json_of_a_run_is_what_it_was() {
    let (caller, settings) = gam(Layout::SharedFirst);
    check("gam.run.jsonl", &json_lines(&run(document("pell.txt", &PAGES), &caller, &settings)));
}
