//! Subgraph summaries: generated at the first request, in one batch, and stored where the corpus is writable.

use std::sync::Mutex;

use calls::{Call, CallError, Scripted};
use memory::{MemoryError, Settings};
use serde_json::json;

use super::{QUESTION, builder, pell, settings};
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Outcome, Scratch, fallbacks, input};

const INDEX: &str = r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"index"}]}"#;
const DETAIL: &str = r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"detail","subgraph_id":1}]}"#;
const DONE: &str = r#"{"answer":"Tom.","cited_nodes":[],"confidence":"low"}"#;

/// Two triangles and an isolated node: three communities.
fn triangles() -> String {
    let node = |id: &str| json!({ "op": "add_node", "id": id, "type": "entity", "content": format!("This is {id}."), "src": "Pell" });
    let edge = |from: &str, to: &str| json!({ "op": "add_edge", "source": from, "target": to, "relation": "knows", "src": "Pell" });
    let nodes = ["a", "b", "c", "d", "e", "f", "lone"].map(node);
    let edges =
        [("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "f"), ("f", "d")].map(|(from, to)| edge(from, to));
    let operations = [&nodes[..], &edges[..]].concat();
    json!({ "operations": operations }).to_string()
}

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    let nothing = r#"{"operations":[]}"#;
    scratch.ingest(&[pell()], &builder(&[&triangles(), nothing, nothing]), &settings()).expect("the script is whole");
    scratch
}

fn report(title: &str, rating: u8) -> String {
    let finding = json!({ "summary": "It is so.", "explanation": "It says so." });
    json!({ "title": title, "summary": "They know one another.", "rating": rating, "rating_explanation": "Few.", "findings": [finding] })
        .to_string()
}

/// Answers turn by turn; reports are named after the first node in their prompt. Returns the steps called, in order.
struct Play<'a> {
    turns: &'a [&'a str],
    calls: Mutex<Vec<&'static str>>,
    told: Mutex<Vec<String>>,
}

impl<'a> Play<'a> {
    fn new(turns: &'a [&'a str]) -> Play<'a> {
        Play { turns, calls: Mutex::default(), told: Mutex::default() }
    }

    fn reply(&self, call: &Call) -> String {
        let mut calls = self.calls.lock().expect("no test panics here");
        calls.push(call.step);
        if call.step == "mindgraph.report" {
            let community = input(call, "COMMUNITY");
            let first = community.split('"').nth(5).unwrap_or_default();
            return report(&format!("About {first}"), 3);
        }
        let message = call.prompt.messages().pop().map(|message| message.content).unwrap_or_default();
        self.told.lock().expect("no test panics here").push(message);
        let turn = calls.iter().filter(|step| **step == "mindgraph.answer").count() - 1;
        self.turns[turn].to_owned()
    }

    fn calls(&self) -> Vec<&'static str> {
        self.calls.lock().expect("no test panics here").clone()
    }

    fn told(&self, turn: usize) -> String {
        self.told.lock().expect("no test panics here")[turn].clone()
    }
}

#[test]
fn reports_are_made_when_the_first_is_wanted_all_at_once() {
    let play = Play::new(&[INDEX, DETAIL, DONE]);
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| play.reply(call));
    scratch().ask(QUESTION, &caller, &settings()).answer.expect("it answers");
    let report = "mindgraph.report";
    let answer = "mindgraph.answer";
    assert_eq!(play.calls(), [answer, report, report, report, answer, answer]);
    assert_eq!((caller.most_at_once(), caller.rounds()), (3, 4), "all reports are one round");
    let index = "\n{\"subgraph_id\":0,\"title\":\"About a\",\"impact_rating\":3,\"n_nodes\":3}\n\
                 {\"subgraph_id\":1,\"title\":\"About d\",\"impact_rating\":3,\"n_nodes\":3}\n\
                 {\"subgraph_id\":2,\"title\":\"About lone\",\"impact_rating\":3,\"n_nodes\":1}\n";
    assert!(play.told(1).contains(index), "{}", play.told(1));
    let detail = "About d (rating 3)\nThey know one another.\n- It is so. It says so.\nnodes: d, e, f";
    assert!(play.told(2).contains(detail), "{}", play.told(2));
}

#[test]
fn nobody_makes_reports_that_nobody_wants() {
    let play = Play::new(&[r#"{"tool_calls":[{"tool":"lookup_source","node_id":"a"}]}"#, DONE]);
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| play.reply(call));
    scratch().ask(QUESTION, &caller, &settings()).answer.expect("it answers");
    assert!(!play.calls().contains(&"mindgraph.report"));
}

/// Asks once more; returns the number of reports generated.
fn made(scratch: &Scratch, keeps: bool) -> usize {
    let play = Play::new(&[DETAIL, DONE]);
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| play.reply(call));
    let asked = if keeps {
        scratch.ask_and_keep(QUESTION, &caller, &settings())
    } else {
        scratch.ask(QUESTION, &caller, &settings())
    };
    asked.answer.expect("it answers");
    play.calls().iter().filter(|step| **step == "mindgraph.report").count()
}

#[test]
fn reports_are_kept_where_they_may_be() -> Outcome {
    let scratch = scratch();
    assert_eq!((made(&scratch, false), made(&scratch, false)), (3, 3), "a reader keeps nothing");
    assert_eq!((made(&scratch, true), made(&scratch, true), made(&scratch, false)), (3, 0, 0));
    let kept = scratch.corpus().derived("mindgraph.report/1")?;
    assert_eq!(kept.len(), 3);
    // They depend on the one block that all nodes come from.
    let block = scratch.corpus().passages(store::Layer::Block)?[0].id;
    assert!(kept.iter().all(|report| report.sources == [block]));
    Ok(())
}

#[test]
fn a_report_that_makes_no_sense_is_replaced_by_the_names_of_its_nodes() {
    let scratch = scratch();
    let caller = [INDEX, DONE]
        .iter()
        .fold(Scripted::new(CONTEXT_TOKENS), |script, turn| script.answer("mindgraph.answer", *turn));
    let caller = caller
        .answer("mindgraph.report", "no report")
        .answer("mindgraph.report", report("", 3))
        .answer("mindgraph.report", report("Three friends", 11))
        .answer("mindgraph.report", report("Three friends", 10));
    let asked = scratch.ask_and_keep(QUESTION, &caller, &settings());
    // The scripted caller serves a batch in sequence: two replies are invalid and are requested again.
    assert!(fallbacks(&asked.events).len() == 1, "{:?}", fallbacks(&asked.events));
    asked.answer.expect("it answers");
    let told = caller.seen().pop().and_then(|call| call.prompt.messages().pop()).expect("it was told").content;
    assert!(told.contains("\"title\":\"a, b, c\",\"impact_rating\":0"), "{told}");
    assert_eq!(
        scratch.corpus().derived("mindgraph.report/1").expect("the corpus can be read").len(),
        2,
        "a stand-in is not kept"
    );
}

#[test]
fn calls_are_blocks_rounds_and_communities_at_most() {
    let play = Play::new(&[INDEX; 40]);
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| play.reply(call));
    let asked = scratch().ask(QUESTION, &caller, &Settings { ..settings() });
    let answer = asked.answer.expect("nonsense is no error");
    assert_eq!((answer.usage.calls, caller.rounds()), (40 + 3, 40 + 1));
}

#[test]
fn a_report_that_the_engine_fails_at_is_an_error_and_the_others_are_kept() {
    let caller = Scripted::new(CONTEXT_TOKENS)
        .answer("mindgraph.answer", INDEX)
        .answer("mindgraph.report", report("Three friends", 3))
        .fail("mindgraph.report", CallError::Closed);
    let scratch = scratch();
    let asked = scratch.ask_and_keep(QUESTION, &caller, &settings());
    assert!(matches!(asked.answer, Err(MemoryError::Call(CallError::Closed))), "{:?}", asked.answer);
    assert_eq!(fallbacks(&asked.events), []);
    assert_eq!(scratch.corpus().derived("mindgraph.report/1").expect("the corpus can be read").len(), 1);
}
