//! Data sets define the form of answers: in every method only the call that answers receives it.

use std::sync::{Arc, Mutex, PoisonError};

use calls::{Call, OnText, OutputFormat};
use memory::comorag::Comorag;
use memory::direct::Direct;
use memory::gam::Gam;
use memory::memcot::Memcot;
use memory::mindgraph::Mindgraph;
use memory::rag::Rag;
use memory::{Layout, Method, Settings, methods, mindgraph};

use crate::fill;
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, document};

const FORM: &str = "- Answer with a colour alone.";
const QUESTION: &str = "What did Ada Brook keep?";
const OPTIONS: &[&str] = &["a green lantern", "a red sail"];
const PAGES: [&str; 2] = ["Ada Brook kept the lighthouse at Pell.", "In 1911 she married the boat builder Tom Reed."];

/// The calls of a preparation and a question.
fn calls(settings: &Settings) -> Vec<Call> {
    let seen = Mutex::new(Vec::new());
    let rules = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
        fill::reply(call)
    });
    let scratch = Scratch::new();
    scratch.ingest(&[document("pell.txt", &PAGES)], &rules, settings).expect("every reply has its form");
    scratch.ask(QUESTION, &rules, settings).answer.expect("every reply has its form");
    seen.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn check(method: &'static dyn Method, options: &[&str], step: &str, kept: &str) {
    for layout in Layout::ALL {
        for answer_rules in [None, Some(FORM)] {
            let settings = Settings {
                method,
                layout,
                answer_rules,
                choices: options.iter().map(ToString::to_string).collect(),
                ..Settings::default().with_options(mindgraph::Options {
                    questions: vec![QUESTION.into()],
                    ..mindgraph::Options::default()
                })
            };
            let calls = calls(&settings);
            let answering = calls.iter().filter(|call| call.step == step).count();
            assert_eq!(answering, 1, "{method}: {:?}", calls.iter().map(|call| call.step).collect::<Vec<_>>());
            for call in calls {
                let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
                let told = prompt.contains(FORM);
                assert_eq!(told, call.step == step && answer_rules.is_some(), "{method}, {layout}, {}", call.step);
                assert!(call.step != step || prompt.contains(kept), "{method} still says: {kept}");
                for option in options {
                    assert_eq!(prompt.contains(option), call.step == step, "{method}, {}: {option}", call.step);
                }
            }
        }
    }
}

#[test]
fn whoever_answers_is_told_the_form_of_answers() {
    check(&Gam, &[], "answer", "Use only what CONTEXT says.");
    check(&Rag, &[], "answer", "Use only what CONTEXT says.");
    check(&Direct, &[], "answer", "Use only what CONTEXT says.");
    // The rules that the methods depend on are unchanged.
    check(&Memcot, &[], "memcot.respond", "infer the most likely one from it.");
    check(&Comorag, &[], "comorag.answer", "or \"*\" if what is written there does not hold it");
    check(&Comorag, OPTIONS, "comorag.answer", "or \"*\" if none is supported");
    let choose = "Choose the option that it supports best.";
    check(&Gam, OPTIONS, "answer", choose);
    check(&Rag, OPTIONS, "answer", choose);
    check(&Direct, OPTIONS, "answer", choose);
    check(&Memcot, OPTIONS, "memcot.respond", "If SHORT_MEMORY supports none outright, choose the most likely one.");
    check(&Mindgraph, OPTIONS, "mindgraph.answer", "is the letter of the best of them in square brackets.");
    check(&Mindgraph, &[], "mindgraph.answer", "\"cited_nodes\": the ids of the nodes that it rests on");
}

/// The answer to a question with options, and its input; the reply is `said` where the form allows it, else another.
fn chosen(method: &'static dyn Method, said: &'static str) -> (String, String) {
    let heard = Arc::new(Mutex::new(String::new()));
    let rules = Rules::new(CONTEXT_TOKENS, |call: &Call| match (call.step, &call.output_format) {
        ("answer" | "memcot.respond", OutputFormat::Choice(allowed)) => {
            assert_eq!(allowed[..2], ["[A]", "[B]"], "{}", call.step);
            allowed.iter().find(|allowed| *allowed == said).unwrap_or(&allowed[1]).clone()
        }
        ("answer" | "memcot.respond", output_format) => panic!("{} may say anything: {output_format:?}", call.step),
        ("mindgraph.answer" | "comorag.answer", _) => fill::reply(call).replace("[A]", said),
        _ => fill::reply(call),
    });
    let mindgraph = mindgraph::Options { questions: vec![QUESTION.into()], ..mindgraph::Options::default() };
    let choices = OPTIONS.iter().map(ToString::to_string).collect();
    let settings = Settings { method, choices, ..Settings::default().with_options(mindgraph) };
    let scratch = Scratch::new();
    scratch.ingest(&[document("pell.txt", &PAGES)], &rules, &settings).expect("every reply has its form");
    let listening = heard.clone();
    let on_text = OnText::new(move |piece| listening.lock().unwrap_or_else(PoisonError::into_inner).push_str(piece));
    let answer = scratch.ask_aloud(QUESTION, &rules, &settings, on_text).answer.expect("every reply has its form");
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (answer.answer, heard)
}

#[test]
fn a_letter_is_answered_with_its_option() {
    for method in methods::concrete() {
        let (answer, heard) = chosen(method, "[B]");
        assert_eq!(answer, "[B] a red sail", "{method}");
        assert_eq!(heard, answer, "{method}: what is handed on is the answer");
    }
    // MemCoT's responder cannot refuse a choice.
    assert_eq!(chosen(&Memcot, "No information available.").0, "[B] a red sail");
}
