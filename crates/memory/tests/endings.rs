//! Replies that the model did not end by itself are requested once more, and never decide anything.

use calls::{Call, CallError, Finish, Scripted, Tokens};
use memory::{MemoryError, Settings, direct, gam};

use crate::scratch::{CONTEXT_TOKENS, Scratch, calls_of, document, fallbacks, script};

const QUESTION: &str = "When did Ada Brook marry?";
const PLAN: (&str, &str) = (
    "gam.plan",
    r#"{"info_needs":["year"],"tools":["keyword"],"keyword_collection":["married"],"vector_queries":[],"page_index":[]}"#,
);
const NOTES: (&str, &str) = ("gam.integrate", r#"{"content":"In 1911.","sources":[3]}"#);
const ENOUGH: &str = r#"{"enough":true}"#;

/// A script for two rounds in which the first check has this reply.
fn checked(endings: &[Finish]) -> Scripted {
    let rest = [PLAN, NOTES, ("gam.follow_up", r#"{"new_requests":["When?"]}"#), ("answer", "In 1911.")];
    let caller = endings.iter().fold(script(&rest), |script, finish| script.ended("gam.info_check", ENOUGH, *finish));
    caller.answer("gam.info_check", ENOUGH)
}

fn settings() -> Settings {
    Settings::default().with_options(gam::Options { max_iterations: 2, ..gam::Options::default() })
}

fn room(calls: &[Call]) -> Vec<usize> {
    calls.iter().map(|call| call.limits.max_output_tokens).collect()
}

#[test]
fn a_form_that_was_closed_is_asked_for_again_with_twice_the_room() {
    let caller = checked(&[Finish::ClosedEarly]);
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings());
    assert_eq!(asked.answer.expect("the second reply is whole").answer, "In 1911.");
    let checks = calls_of("gam.info_check", &caller);
    let [first, second] = room(&checks)[..] else { panic!("{checks:?}") };
    assert_eq!(second, 2 * first);
    assert_eq!(checks[0].prompt.messages(), checks[1].prompt.messages());
    assert_eq!(checks[0].sampling, checks[1].sampling, "the same words, and on from there");
    assert_eq!(calls_of("gam.follow_up", &caller).len(), 0, "the second reply decides");
    assert_eq!(fallbacks(&asked.events), []);
}

#[test]
fn a_form_that_was_closed_twice_decides_nothing_and_the_trace_says_so() {
    for endings in [[Finish::ClosedEarly; 2], [Finish::LoopClosed; 2], [Finish::ClosedEarly, Finish::LoopClosed]] {
        let caller = checked(&endings);
        let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings());
        asked.answer.expect("the method continues without it");
        assert_eq!(calls_of("gam.follow_up", &caller).len(), 1, "the closed `true` is not taken for one");
        let fallbacks = fallbacks(&asked.events);
        let [("gam.info_check", reason)] = fallbacks[..] else { panic!("{fallbacks:?}") };
        assert!(reason.contains("cut") && reason.contains("asked for twice"), "{reason}");
    }
}

#[test]
fn a_reply_that_repeated_itself_is_drawn_anew() {
    let caller = checked(&[Finish::LoopClosed]);
    Scratch::lighthouse().ask(QUESTION, &caller, &settings()).answer.expect("the second reply is whole");
    let checks = calls_of("gam.info_check", &caller);
    let [first, second] = &checks[..] else { panic!("{checks:?}") };
    assert_eq!(room(&checks)[0], room(&checks)[1]);
    assert_ne!(first.sampling.seed, second.sampling.seed);
    assert!(second.sampling.temperature >= 0.5);
}

#[test]
fn a_form_that_an_endpoint_cut_off_is_asked_for_again() {
    let cut_off = || CallError::CutOff { step: "gam.info_check", max_output_tokens: 128 };
    let steps = [PLAN, NOTES, ("gam.follow_up", r#"{"new_requests":["When?"]}"#), ("answer", "In 1911.")];
    let once = script(&steps).fail("gam.info_check", cut_off()).answer("gam.info_check", ENOUGH);
    let asked = Scratch::lighthouse().ask(QUESTION, &once, &settings());
    assert_eq!(asked.answer.expect("the second reply is whole").answer, "In 1911.");
    assert_eq!(fallbacks(&asked.events), []);
    let always = script(&steps).fail("gam.info_check", cut_off());
    let asked = Scratch::lighthouse().ask(QUESTION, &always, &settings());
    asked.answer.expect("the method continues without it");
    assert!(fallbacks(&asked.events).iter().all(|(step, _)| *step == "gam.info_check"));
    assert!(!fallbacks(&asked.events).is_empty());
}

#[test]
fn a_reply_of_another_form_is_asked_for_once_more_and_is_an_error_the_second_time() {
    let other = || CallError::OutOfForm { step: "gam.info_check", reason: "it is no JSON (Syntax)".into() };
    let steps = [PLAN, NOTES, ("gam.follow_up", r#"{"new_requests":["When?"]}"#), ("answer", "In 1911.")];
    let once = script(&steps).fail("gam.info_check", other()).answer("gam.info_check", ENOUGH);
    let asked = Scratch::lighthouse().ask(QUESTION, &once, &settings());
    assert_eq!(asked.answer.expect("the second reply has the form").answer, "In 1911.");
    let [first, second] = &calls_of("gam.info_check", &once)[..] else { panic!("{:?}", once.steps()) };
    assert_eq!(first.prompt.messages(), second.prompt.messages());
    assert_ne!(first.sampling.seed, second.sampling.seed);
    let always = script(&steps).fail("gam.info_check", other());
    match Scratch::lighthouse().ask(QUESTION, &always, &settings()).answer {
        Err(MemoryError::Call(found)) => assert_eq!(found, other()),
        answer => panic!("{answer:?}"),
    }
    assert_eq!(calls_of("gam.info_check", &always).len(), 2);
}

#[test]
fn where_the_context_has_no_more_room_nothing_is_asked_again() {
    let scratch = Scratch::new();
    let settings = Settings::new(&direct::Direct);
    scratch.ingest(&[document("a.txt", &["One."])], &script(&[]), &settings).expect("nothing is called");
    let wide = Scripted::new(CONTEXT_TOKENS).ended("answer", "Three", Finish::Length);
    scratch.ask("How many?", &wide, &settings).answer.expect("text that was cut is text");
    let calls = wide.seen();
    let [first, second] = room(&calls)[..] else { panic!("{calls:?}") };
    assert_eq!(second, 2 * first);

    // Twice 128 tokens exceeds the room beside the prompt; then the prompt and 128 tokens fill the context.
    let prompt_tokens = wide.prompt_tokens(&calls[0]);
    for (context, want) in [(prompt_tokens + 150, vec![128, 150]), (prompt_tokens + 128, vec![128])] {
        let small = Scripted::new(context).ended("answer", "Three", Finish::Length);
        let asked = scratch.ask("How many?", &small, &settings);
        asked.answer.expect("text that was cut is text");
        assert_eq!(room(&small.seen()), want);
        let fallbacks = fallbacks(&asked.events);
        assert!(matches!(fallbacks[..], [("answer", reason)] if reason.contains("reached its limit")), "{fallbacks:?}");
    }
}
