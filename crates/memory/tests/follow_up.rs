//! Rewriting a question of a conversation: how long a question and its rewrite may be, and what a small model reads.

use calls::{Scripted, reading};
use memory::rag::Rag;
use memory::{Event, Profile, Settings, Trace, Turn, search_query, standalone};
use serde_json::json;

use crate::scratch::{CONTEXT_TOKENS, Scratch, block_on, calls_of, document, fallbacks, schema, script, session};

const STEP: &str = "follow_up.rewrite";

/// The question as it is understood after one turn, and the events.
fn understood(question: &str, caller: &Scripted) -> (String, Vec<Event>) {
    let trace = Trace::kept();
    let session = session(caller, &calls::ScriptedEmbedder, &Settings::default(), &trace);
    let turns = [Turn { question: "Who keeps the lamp?".into(), answer: "Ada Brook.".into(), short: None }];
    let understood = block_on(standalone(question, &turns, &session)).expect("the script is whole");
    (understood, trace.events())
}

fn saying(rewritten: &str) -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer(STEP, json!({ "question": rewritten }).to_string())
}

fn of_words(count: usize) -> String {
    format!("{}?", vec!["lamp"; count].join(" "))
}

#[test]
fn a_rewrite_has_room_for_all_of_the_question_and_for_names() {
    for question in ["When did she?".to_owned(), of_words(300)] {
        let rewritten = question.replace('?', " of Ada Brook?");
        let caller = saying(&rewritten);
        assert_eq!(understood(&question, &caller).0, rewritten);
        let call = &calls_of(STEP, &caller)[0];
        assert_eq!(schema(call)["properties"]["question"]["maxLength"], question.len() + 200);
        assert!(call.limits.max_output_tokens >= question.split(' ').count() + 100, "{:?}", call.limits);
    }
}

#[test]
fn a_rewrite_that_reaches_its_limit_is_not_used() {
    let question = "When did she?";
    let limit = question.len() + 200;
    for (chars, is_used) in [(limit - 1, true), (limit, false)] {
        let rewritten = format!("{}?", "a".repeat(chars - 1));
        let (understood, events) = understood(question, &saying(&rewritten));
        assert_eq!(understood, if is_used { &rewritten } else { question }, "{chars} characters");
        assert_eq!(fallbacks(&events).len(), usize::from(!is_used));
    }
}

#[test]
fn an_answer_in_place_of_a_rewrite_is_not_used() {
    let answered = json!({ "question": "She married Tom Reed in 1911." }).to_string();
    let (found, events) = understood("When did she?", &Scripted::new(CONTEXT_TOKENS).answer(STEP, answered.clone()));
    assert_eq!((found.as_str(), fallbacks(&events)), ("When did she?", vec![(STEP, "it is no question")]));
    let rewritten = json!({ "question": "When did Ada Brook marry?" }).to_string();
    let second = Scripted::new(CONTEXT_TOKENS).answer(STEP, answered).answer(STEP, rewritten);
    assert_eq!(understood("When did she?", &second).0, "When did Ada Brook marry?");
    // A request without a question mark may be rewritten without one.
    let request = "Tell me when Ada Brook married.";
    assert_eq!(understood("Tell me when she did.", &saying(request)).0, request);
}

#[test]
fn turns_that_are_too_long_to_be_read_are_in_the_trace() {
    let caller = Scripted::new(CONTEXT_TOKENS);
    let trace = Trace::kept();
    let session = session(&caller, &calls::ScriptedEmbedder, &Settings::default(), &trace);
    let turns = [Turn { question: "Who keeps the lamp?".into(), answer: of_words(CONTEXT_TOKENS / 4), short: None }];
    let question = "When did she?";
    assert_eq!(block_on(standalone(question, &turns, &session)).expect("nothing is called"), question);
    assert_eq!(trace.events(), [Event::Memo { step: STEP.into(), entries: 1, left_out: 1 }]);
}

#[test]
fn a_question_that_is_too_long_for_a_reply_is_not_rewritten() {
    let (question, caller) = (of_words(500), Scripted::new(CONTEXT_TOKENS));
    let (understood, events) = understood(&question, &caller);
    assert_eq!((understood, caller.steps()), (question, Vec::new()));
    assert_eq!(fallbacks(&events), [(STEP, "a rewrite needs 601 tokens, and a reply may have 512")]);
}

#[test]
fn a_small_model_reads_the_name_that_a_pronoun_refers_to() {
    let scratch = Scratch::new();
    let settings = Settings { method: &Rag, profile: Some(Profile::Small), ..Settings::default() };
    let page = "Ada Brook keeps the lamp of the lighthouse. She was born in Pell in 1880.";
    scratch.ingest(&[document("pell.txt", &[page])], &script(&[]), &settings).expect("nothing is called");
    let caller = Scripted::new(CONTEXT_TOKENS).with_adapter(reading::ADAPTER).answer("answer.read", "1880");
    let trace = Trace::kept();
    let mut session = session(&caller, &calls::ScriptedEmbedder, &settings, &trace);
    let turns = [Turn { question: "Who keeps the lamp?".into(), answer: "Ada Brook.".into(), short: None }];
    let question = "When was she born?";
    session.settings.search_query = search_query(question, &turns, &session);
    let understood = block_on(standalone(question, &turns, &session)).expect("nothing is called");
    assert_eq!(understood, "When was Ada Brook born?");
    let answer = block_on(memory::ask(&understood, &scratch.corpus(), &session)).expect("a reply is enough");
    assert_eq!(answer.searched_with.as_deref(), Some("Who keeps the lamp? When was Ada Brook born?"));
    assert!(caller.steps().iter().all(|step| *step == "answer.read"), "rules rewrite it: {:?}", caller.steps());
    let calls = calls_of("answer.read", &caller);
    assert!(!calls.is_empty());
    for call in calls {
        let prompt = &call.prompt.messages()[1].content;
        assert!(prompt.ends_with("QUESTION\nWhen was Ada Brook born?"), "{prompt}");
    }
}
