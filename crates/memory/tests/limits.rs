//! Every string that a reply may have a greatest length for is one whose limit the prompt states in words.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use calls::schema::QUOTE_OF;
use calls::{Call, OutputFormat};
use memory::comorag::Comorag;
use memory::gam::Gam;
use memory::memcot::{Memcot, MemcotStore};
use memory::mindgraph::Mindgraph;
use memory::{Settings, memcot, mindgraph};
use serde_json::Value;

use crate::fill;
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, document};

const QUESTION: &str = "What did Ada Brook keep?";

const TEXT: &str = "Ada Brook kept the lighthouse at Pell. In 1911 she married the boat builder Tom Reed.";

/// The fewest and the most characters for each word that the prompt grants.
const CHARS_PER_WORD: std::ops::RangeInclusive<u64> = 7..=12;

/// Takes as many steps as possible: no reply ends a loop, and the graph has communities to report on.
fn reply(call: &Call, nth: usize) -> String {
    match (call.step, nth) {
        ("gam.info_check", _) => r#"{"enough":false}"#.to_owned(),
        ("comorag.answer", _) => r#"{"content_understanding":"","question_analysis":[],"final_answer":"*"}"#.to_owned(),
        ("mindgraph.build", _) => {
            r#"{"operations":[{"op":"add_node","id":"ada","type":"entity","content":"A keeper.","src":"Ada Brook"}]}"#
                .to_owned()
        }
        ("mindgraph.answer", 0) => r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"index"}]}"#.to_owned(),
        _ => fill::reply(call),
    }
}

/// All calls of a run of a method, from reading a document to the answer.
fn calls(settings: &Settings) -> Vec<Call> {
    let seen = Mutex::new(Vec::<Call>::new());
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = seen.iter().filter(|earlier| earlier.step == call.step).count();
        seen.push(call.clone());
        reply(call, nth)
    });
    let scratch = Scratch::new();
    scratch.ingest(&[document("pell.txt", &[TEXT])], &caller, settings).expect("every call has a reply");
    scratch.ask(QUESTION, &caller, settings).answer.expect("every call has a reply");
    drop(caller);
    seen.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The greatest lengths of the strings of a schema that a model writes by itself.
fn lengths(schema: &Value) -> BTreeSet<u64> {
    match schema {
        Value::Object(map) if map.contains_key("maxLength") && !map.contains_key(QUOTE_OF) => {
            map["maxLength"].as_u64().into_iter().collect()
        }
        Value::Object(map) => map.values().flat_map(lengths).collect(),
        Value::Array(values) => values.iter().flat_map(lengths).collect(),
        _ => BTreeSet::new(),
    }
}

/// The numbers before "words" in a prompt.
fn stated(prompt: &str) -> Vec<u64> {
    let words: Vec<&str> = prompt.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| pair[1].starts_with("words"));
    pairs.filter_map(|pair| pair[0].parse().ok()).collect()
}

#[test]
fn prompts_state_the_length_of_every_string_of_a_reply() {
    let lightrag = memcot::Options { store: MemcotStore::Lightrag, ..memcot::Options::default() };
    let set = mindgraph::Options { questions: vec![QUESTION.into()], ..mindgraph::Options::default() };
    let runs = [
        Settings { method: &Gam, ..Settings::default() },
        Settings { method: &Memcot, ..Settings::default().with_options(lightrag) },
        Settings { method: &Comorag, ..Settings::default() },
        Settings { method: &Mindgraph, ..Settings::default().with_options(set) },
    ];
    let mut steps = BTreeSet::new();
    for call in runs.iter().flat_map(calls) {
        let OutputFormat::Json(schema) = &call.output_format else { continue };
        let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
        let stated = stated(&prompt);
        for length in lengths(schema) {
            let is_of = |words: &u64| *words > 0 && CHARS_PER_WORD.contains(&(length / words));
            assert!(stated.iter().any(is_of), "{}: {length} characters, stated are {stated:?} words", call.step);
            steps.insert(call.step);
        }
    }
    for step in [
        "gam.plan",
        "gam.integrate",
        "gam.follow_up",
        "memcot.extract",
        "memcot.keywords",
        "memcot.zoom_in",
        "memcot.zoom_out",
        "memcot.judge",
        "comorag.entities",
        "comorag.triples",
        "comorag.encode",
        "comorag.probe",
        "comorag.answer",
        "mindgraph.build",
        "mindgraph.answer",
        "mindgraph.report",
    ] {
        assert!(steps.contains(step), "{step} is not among {steps:?}");
    }
}

#[test]
fn a_reply_has_room_for_the_lengths_that_its_prompt_states() {
    let set = mindgraph::Options { questions: vec![QUESTION.into()], ..mindgraph::Options::default() };
    let runs = [
        Settings { method: &Memcot, ..Settings::default() },
        Settings { method: &Mindgraph, ..Settings::default().with_options(set) },
    ];
    let calls: Vec<Call> = runs.iter().flat_map(calls).collect();
    // Thoughts and what is missing; a report with five findings.
    let cases = [("memcot.zoom_in", 250), ("memcot.zoom_out", 450), ("memcot.judge", 320), ("mindgraph.report", 750)];
    for (step, words) in cases {
        let call = calls.iter().find(|call| call.step == step).unwrap_or_else(|| panic!("{step} was not called"));
        let most = call.limits.max_output_tokens;
        assert!(2 * most / 3 >= words, "{step}: {words} words in {most} tokens of a context of {CONTEXT_TOKENS}");
    }
}
