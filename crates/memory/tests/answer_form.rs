//! Data sets want answers of their own form: in every method whoever answers is told it, and nobody else.

use std::sync::{Mutex, PoisonError};

use calls::Call;
use memory::{Layout, Method, Settings, comorag, mindgraph};

use crate::fill;
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, document};

const FORM: &str = "- Answer with a colour alone.";
const QUESTION: &str = "What did Ada Brook keep?";
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

fn check(method: Method, choices: &[&str], step: &str, kept: &str) {
    for layout in Layout::ALL {
        for answer_rules in [None, Some(FORM)] {
            let settings = Settings {
                method,
                layout,
                answer_rules,
                comorag: comorag::Options {
                    choices: choices.iter().map(ToString::to_string).collect(),
                    ..comorag::Options::default()
                },
                mindgraph: mindgraph::Options { questions: vec![QUESTION.into()], ..mindgraph::Options::default() },
                ..Settings::default()
            };
            let calls = calls(&settings);
            let answering = calls.iter().filter(|call| call.step == step).count();
            assert_eq!(answering, 1, "{method}: {:?}", calls.iter().map(|call| call.step).collect::<Vec<_>>());
            for call in calls {
                let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
                let told = prompt.contains(FORM);
                assert_eq!(told, call.step == step && answer_rules.is_some(), "{method}, {layout}, {}", call.step);
                assert!(call.step != step || prompt.contains(kept), "{method} still says: {kept}");
            }
        }
    }
}

#[test]
fn whoever_answers_is_told_the_form_of_answers() {
    check(Method::Gam, &[], "answer", "Use only what CONTEXT says.");
    check(Method::Rag, &[], "answer", "Use only what CONTEXT says.");
    check(Method::Direct, &[], "answer", "Use only what CONTEXT says.");
    // What the methods need to go on stands there as before.
    check(Method::Memcot, &[], "memcot.respond", "write exactly: No information available.");
    check(Method::Comorag, &[], "comorag.answer", "or \"*\" if what is written there does not hold it");
    check(Method::Comorag, &["blue", "red"], "comorag.answer", "or \"*\" if none is supported");
    check(Method::Mindgraph, &[], "mindgraph.answer", "\"cited_nodes\": the ids of the nodes that it rests on");
}
