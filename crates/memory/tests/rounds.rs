//! Every branch of the researcher's loop (paper 002, section 2.2.2): which calls are made, how many, and when the loop
//! ends.

use calls::Call;
use memory::{Event, Profile, Settings, gam};

use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, calls_of, fallbacks, input, script};

const QUESTION: &str = "When did Ada Brook marry?";
/// A page that is named is read in every round.
const PLAN: (&str, &str) = (
    "gam.plan",
    r#"{"info_needs":["year"],"tools":["page_index"],"keyword_collection":[],"vector_queries":[],"page_index":[3]}"#,
);
const SEARCH: (&str, &str) = (
    "gam.plan",
    r#"{"info_needs":["year"],"tools":["keyword"],"keyword_collection":["married"],"vector_queries":[],"page_index":[]}"#,
);
const NO_HITS: (&str, &str) = (
    "gam.plan",
    r#"{"info_needs":["year"],"tools":["keyword"],"keyword_collection":["zebra"],"vector_queries":[],"page_index":[]}"#,
);
const NO_PLAN: (&str, &str) = ("gam.plan", "I would search for the wedding.");
const NOTES: (&str, &str) = ("gam.integrate", r#"{"content":"Ada Brook married in 1911.","sources":[3]}"#);
const MORE_NOTES: (&str, &str) =
    ("gam.integrate", r#"{"content":"Ada Brook married Tom Reed in 1911.","sources":[3]}"#);
const NO_NOTES: (&str, &str) = ("gam.integrate", r#"{"content":"","sources":[]}"#);
const ENOUGH: (&str, &str) = ("gam.info_check", r#"{"enough":true}"#);
const NOT_ENOUGH: (&str, &str) = ("gam.info_check", r#"{"enough":false}"#);
const FOLLOW_UP: (&str, &str) = ("gam.follow_up", r#"{"new_requests":["In which year was the wedding?"]}"#);
const NO_FOLLOW_UP: (&str, &str) = ("gam.follow_up", r#"{"new_requests":[]}"#);
const ANSWER: (&str, &str) = ("answer", "In 1911.");

/// Asks with a script; `want` lists the steps without the prefix `gam.`, retries and fallbacks included.
fn check(rounds: usize, answers: &[(&'static str, &str)], want: &[&str]) {
    let scratch = Scratch::lighthouse();
    let caller = script(answers);
    let settings = Settings::default().with_options(gam::Options { max_iterations: rounds, ..gam::Options::default() });
    let asked = scratch.ask(QUESTION, &caller, &settings);
    let answer = asked.answer.unwrap_or_else(|error| panic!("{error} after {:?}", caller.steps()));
    let steps: Vec<&str> = caller.steps().into_iter().map(|step| step.trim_start_matches("gam.")).collect();
    assert_eq!(steps, want, "in {rounds} rounds of {answers:?}");
    assert_eq!(answer.answer, "In 1911.");
    assert_eq!(answer.usage.calls, steps.len());
    // A call is repeated only if its first reply is invalid; the rule is about the other calls.
    let mut first_tries = steps;
    first_tries.dedup();
    assert!(first_tries.len() <= 4 * rounds + 1, "{first_tries:?}");
}

#[test]
fn research_ends_when_it_is_enough() {
    let want = ["plan", "integrate", "info_check", "answer"];
    check(3, &[PLAN, NOTES, ENOUGH, ANSWER], &want);
    check(1, &[PLAN, NOTES, ENOUGH, ANSWER], &want);
    let want = ["plan", "integrate", "info_check", "follow_up", "plan", "integrate", "info_check", "answer"];
    check(3, &[PLAN, NOTES, MORE_NOTES, NOT_ENOUGH, ENOUGH, FOLLOW_UP, ANSWER], &want);
}

#[test]
fn research_that_is_never_enough_ends_with_its_rounds() {
    for rounds in [1, 2, 3, 5] {
        let mut want = ["plan", "integrate", "info_check", "follow_up"].repeat(rounds);
        // No call would read the last follow-up.
        want.pop();
        want.push("answer");
        let notes = ["one", "two", "three", "four", "five"]
            .map(|word| format!(r#"{{"content":"Ada Brook married at {word}.","sources":[3]}}"#));
        let notes = notes.iter().map(|notes| ("gam.integrate", notes.as_str()));
        let replies: Vec<(&'static str, &str)> =
            [PLAN, NOT_ENOUGH, FOLLOW_UP, ANSWER].into_iter().chain(notes).collect();
        check(rounds, &replies, &want);
    }
}

#[test]
fn notes_that_did_not_change_are_not_checked_again() {
    let want = ["plan", "integrate", "info_check", "follow_up", "plan", "integrate", "answer"];
    check(2, &[PLAN, NOTES, NOT_ENOUGH, FOLLOW_UP, ANSWER], &want);
    let want = [
        "plan",
        "integrate",
        "info_check",
        "follow_up",
        "plan",
        "integrate",
        "follow_up",
        "plan",
        "integrate",
        "info_check",
        "answer",
    ];
    check(3, &[PLAN, NOTES, NOTES, MORE_NOTES, NOT_ENOUGH, FOLLOW_UP, ANSWER], &want);
}

#[test]
fn without_sampling_a_round_that_changed_nothing_is_the_last() {
    let steps = |temperature| {
        let caller = script(&[SEARCH, NOTES, NOT_ENOUGH, NO_FOLLOW_UP, ANSWER]);
        let settings = Settings { temperature, ..Settings::default() };
        let settings = settings.with_options(gam::Options { max_iterations: 4, ..gam::Options::default() });
        Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
        caller.steps()
    };
    let first = ["gam.plan", "gam.integrate", "gam.info_check", "gam.follow_up"];
    let again = ["gam.plan", "gam.follow_up"];
    assert_eq!(steps(0.0), [&first[..], &again, &["answer"]].concat());
    assert_eq!(steps(0.3), [&first[..], &again.repeat(2)[..], &["gam.plan", "answer"]].concat());
}

#[test]
fn notes_that_are_empty_are_not_judged() {
    let want = ["plan", "integrate", "follow_up", "plan", "integrate", "follow_up", "plan", "integrate", "answer"];
    check(3, &[NO_HITS, NO_NOTES, FOLLOW_UP, ANSWER], &want);
    let want = ["plan", "integrate", "follow_up", "plan", "integrate", "answer"];
    check(2, &[PLAN, NO_NOTES, FOLLOW_UP, ANSWER], &want);
    check(2, &[PLAN, ("gam.integrate", r#"{"content":" \n ","sources":[3]}"#), FOLLOW_UP, ANSWER], &want);
}

#[test]
fn a_page_that_is_in_the_notes_is_not_read_again_when_a_search_finds_it() {
    let want = ["plan", "integrate", "info_check", "follow_up", "plan", "follow_up", "plan", "answer"];
    check(3, &[SEARCH, NOTES, NOT_ENOUGH, FOLLOW_UP, ANSWER], &want);
    // Notes that could not be written have no pages, and empty ones neither.
    let want = ["plan", "integrate", "integrate", "follow_up", "plan", "integrate", "info_check", "answer"];
    let no_notes = ("gam.integrate", "The notes are:");
    check(2, &[SEARCH, no_notes, no_notes, NOTES, FOLLOW_UP, NOT_ENOUGH, ANSWER], &want);
    let want = ["plan", "integrate", "follow_up", "plan", "integrate", "info_check", "answer"];
    check(2, &[SEARCH, NO_NOTES, NOTES, FOLLOW_UP, NOT_ENOUGH, ANSWER], &want);
}

#[test]
fn a_page_that_told_nothing_is_read_again_for_another_request_if_the_notes_are_new() {
    // Pages 1, 3 and 4, of which the notes rest on the first.
    let plan = r#"{"info_needs":["year"],"tools":["keyword"],"keyword_collection":["married","lamp"],"vector_queries":[],"page_index":[]}"#;
    let pages_of_integrations = |follow_ups: &[(&'static str, &str)], max_iterations| {
        let notes = ("gam.integrate", r#"{"content":"Ada lit the lamp.","sources":[1]}"#);
        let caller = script(&[&[("gam.plan", plan), notes, NOT_ENOUGH, ANSWER][..], follow_ups].concat());
        let settings = Settings::default().with_options(gam::Options { max_iterations, ..gam::Options::default() });
        Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
        let calls = calls_of("gam.integrate", &caller);
        calls.iter().map(|call| input(call, "EVIDENCE_CONTEXT").contains("](3)")).collect::<Vec<_>>()
    };
    assert_eq!(pages_of_integrations(&[FOLLOW_UP], 2), [true, true]);
    assert_eq!(pages_of_integrations(&[NO_FOLLOW_UP], 2), [true], "the same request");
    let other = ("gam.follow_up", r#"{"new_requests":["Who built boats?"]}"#);
    assert_eq!(pages_of_integrations(&[FOLLOW_UP, other], 3), [true, true], "another request, and the same notes");
}

#[test]
fn a_page_is_not_read_again_for_notes_that_name_no_page() {
    let notes = ("gam.integrate", r#"{"content":"Ada Brook married in 1911.","sources":[]}"#);
    let want = ["plan", "integrate", "info_check", "follow_up", "plan", "answer"];
    check(2, &[SEARCH, notes, NOT_ENOUGH, FOLLOW_UP, ANSWER], &want);
}

#[test]
fn the_follow_up_sees_the_requests_that_were_tried() {
    let other = ("gam.follow_up", r#"{"new_requests":["Whose boats?","In which year was the wedding?"]}"#);
    let caller = script(&[SEARCH, NOTES, NOT_ENOUGH, FOLLOW_UP, other, ANSWER]);
    let settings = Settings::default().with_options(gam::Options { max_iterations: 4, ..gam::Options::default() });
    Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
    let calls = calls_of("gam.follow_up", &caller);
    let [first, second, third] = &calls[..] else { panic!("{} follow-ups", calls.len()) };
    let prompt: String = first.prompt.messages().into_iter().map(|message| message.content).collect();
    assert!(!prompt.contains("TRIED_REQUESTS"), "{prompt}");
    assert_eq!(input(second, "TRIED_REQUESTS"), "- In which year was the wedding?");
    assert_eq!(input(third, "TRIED_REQUESTS"), "- In which year was the wedding?\n- Whose boats?");
    assert_eq!(input(third, "RESULT"), "Ada Brook married in 1911.");
}

#[test]
fn research_of_a_small_model_ends_when_no_other_page_can_be_read() {
    let steps = |plan| {
        let caller = script(&[plan, NOTES, NOT_ENOUGH, FOLLOW_UP, ANSWER]);
        let settings = Settings { profile: Some(Profile::Small), ..Settings::default() };
        Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
        caller.steps().into_iter().filter(|step| step.starts_with("gam.")).collect::<Vec<_>>()
    };
    // The second round finds the page that the first one has read.
    let first = ["gam.plan", "gam.integrate", "gam.info_check", "gam.follow_up"];
    assert_eq!(steps(PLAN), [&first[..], &["gam.plan"]].concat());
    let all = (
        "gam.plan",
        r#"{"info_needs":["year"],"tools":["page_index"],"keyword_collection":[],"vector_queries":[],"page_index":[1,2,3,4]}"#,
    );
    assert_eq!(steps(all), ["gam.plan", "gam.integrate"]);
}

#[test]
fn a_reply_without_notes_keeps_the_notes() {
    let caller = script(&[PLAN, NOTES, NO_NOTES, NOT_ENOUGH, FOLLOW_UP, ANSWER]);
    let settings = Settings::default().with_options(gam::Options { max_iterations: 2, ..gam::Options::default() });
    Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
    assert_eq!(calls_of("gam.integrate", &caller).len(), 2);
    assert_eq!(input(&calls_of("answer", &caller)[0], "CONTEXT"), "Ada Brook married in 1911.");
}

#[test]
fn the_check_and_the_follow_up_are_one_round_with_the_same_inputs() {
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        let is_second = call.step == "gam.integrate" && !input(call, "RESULT").is_empty();
        let replies = [PLAN, if is_second { MORE_NOTES } else { NOTES }, NOT_ENOUGH, FOLLOW_UP, ANSWER];
        replies.into_iter().find(|(step, _)| *step == call.step).expect("every step has a reply").1.to_owned()
    });
    let settings = Settings::default().with_options(gam::Options { max_iterations: 2, ..gam::Options::default() });
    Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("every step has a reply");
    // Plan, integrate, reflect, plan, integrate, check, answer.
    assert_eq!(caller.rounds(), 7);
    let caller = script(&[PLAN, NOTES, NOT_ENOUGH, FOLLOW_UP, ANSWER]);
    Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
    let inputs = |step| ["REQUEST", "RESULT"].map(|name| input(&calls_of(step, &caller)[0], name));
    // A follow-up that is not used is neither counted nor traced.
    let enough = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        let replies = [PLAN, NOTES, ENOUGH, FOLLOW_UP, ANSWER];
        replies.into_iter().find(|(step, _)| *step == call.step).expect("every step has a reply").1.to_owned()
    });
    let asked = Scratch::lighthouse().ask(QUESTION, &enough, &settings);
    assert_eq!(asked.answer.expect("every step has a reply").usage.calls, 4);
    let traced = asked.events.iter().any(|event| matches!(event, Event::Call { step, .. } if step == "gam.follow_up"));
    assert!(!traced);
    assert_eq!(inputs("gam.info_check"), inputs("gam.follow_up"));
}

#[test]
fn agents_think_first_in_the_paper_profile_and_the_prompt_says_how_long() {
    let thinking = |profile| {
        let caller = script(&[PLAN, NOTES, NOT_ENOUGH, FOLLOW_UP, ANSWER, ("answer.verify", "yes")]);
        let settings = Settings { profile: Some(profile), ..Settings::default() };
        Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
        let steps = ["gam.plan", "gam.integrate", "gam.info_check", "gam.follow_up"];
        steps.map(|step| {
            let call = &calls_of(step, &caller)[0];
            let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
            assert_eq!(prompt.contains("Think first"), call.limits.thinking_tokens > 0, "{step}: {prompt}");
            call.limits.thinking_tokens
        })
    };
    let tokens = CONTEXT_TOKENS / 16;
    assert_eq!(thinking(Profile::Paper), [tokens; 4]);
    assert_eq!(thinking(Profile::Small), [0; 4]);
}

#[test]
fn replies_that_make_no_sense_are_asked_for_once_more() {
    let want = ["plan", "plan", "integrate", "info_check", "answer"];
    check(3, &[NO_PLAN, PLAN, NOTES, ENOUGH, ANSWER], &want);
    check(3, &[NO_PLAN, NO_PLAN, NOTES, ENOUGH, ANSWER], &want);
    let want = ["plan", "integrate", "integrate", "info_check", "answer"];
    check(3, &[PLAN, ("gam.integrate", "The notes are:"), NOTES, ENOUGH, ANSWER], &want);
    let want =
        ["plan", "integrate", "info_check", "info_check", "follow_up", "plan", "integrate", "info_check", "answer"];
    let unsure = ("gam.info_check", r#"{"enough":"perhaps"}"#);
    check(2, &[PLAN, NOTES, MORE_NOTES, unsure, unsure, ENOUGH, FOLLOW_UP, ANSWER], &want);
    let want =
        ["plan", "integrate", "info_check", "follow_up", "follow_up", "plan", "integrate", "info_check", "answer"];
    check(2, &[PLAN, NOTES, MORE_NOTES, NOT_ENOUGH, ("gam.follow_up", "{}"), ANSWER], &want);
}

#[test]
fn only_planning_reads_the_follow_up() {
    let check = |follow_up: &str, request: &str| {
        let caller = script(&[PLAN, NOTES, NOT_ENOUGH, ("gam.follow_up", follow_up), ANSWER]);
        Scratch::lighthouse().ask(QUESTION, &caller, &Settings::default()).answer.expect("the script is whole");
        let plans: Vec<String> = calls_of("gam.plan", &caller).iter().map(|call| input(call, "QUESTION")).collect();
        assert_eq!(plans, [QUESTION, request, request], "{follow_up}");
        for (step, name) in [
            ("gam.integrate", "QUESTION"),
            ("gam.info_check", "REQUEST"),
            ("gam.follow_up", "REQUEST"),
            ("answer", "QUESTION"),
        ] {
            let calls = calls_of(step, &caller);
            assert!(calls.iter().all(|call| input(call, name) == QUESTION), "{step} after {follow_up}");
        }
    };
    check(r#"{"new_requests":["In which year?","Where?"]}"#, "In which year? Where?");
    check(NO_FOLLOW_UP.1, QUESTION);
    check("no idea", QUESTION);
    check(r#"{"new_requests":["","  "]}"#, QUESTION);
    check(r#"{"new_requests":[" ","Where?"]}"#, "Where?");
    check(r#"{"new_requests":["None.","N/A"]}"#, QUESTION);
}

#[test]
fn the_same_question_in_another_round_is_drawn_anew() {
    let caller = script(&[PLAN, NOTES, NOT_ENOUGH, NO_FOLLOW_UP, ANSWER]);
    let settings = Settings { seed: 40, ..Settings::default() };
    Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
    let seeds = |step| calls_of(step, &caller).iter().map(|call| call.sampling.seed).collect::<Vec<_>>();
    assert_eq!(seeds("gam.plan"), [40, 41, 42]);
    assert_eq!(seeds("gam.integrate"), [40, 41, 42]);
    assert_eq!(seeds("gam.follow_up"), [40, 41]);
}

#[test]
fn a_second_try_knows_what_was_wrong_and_is_drawn_anew() {
    let caller = script(&[NO_PLAN, PLAN, NOTES, ENOUGH, ANSWER]);
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &Settings::default());
    asked.answer.expect("the script is whole");
    let [first, second] = &calls_of("gam.plan", &caller)[..] else { panic!("there are two tries") };
    assert_ne!(first.sampling.seed, second.sampling.seed);
    assert_eq!(first.output_format, second.output_format);
    let (before, after) = (first.prompt.segments(), second.prompt.segments());
    let [reply, complaint] = &after[before.len()..] else { panic!("the reply and the complaint follow") };
    assert_eq!(&after[..before.len()], before);
    assert_eq!(reply.text, NO_PLAN.1);
    assert!(complaint.text.contains("it is not the JSON that was asked for"), "{}", complaint.text);
    assert_eq!(fallbacks(&asked.events), []);
}
