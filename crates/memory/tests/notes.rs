//! Notes (equation 4): the prompt of the integration agent, and which of its replies are kept.

use memory::{Event, Settings, gam};

use crate::scratch::{Asked, Scratch, calls_of, fallbacks, input, schema, script};

const QUESTION: &str = "Whom did Ada Brook marry?";
const PLAN: &str =
    r#"{"info_needs":["who"],"tools":["page_index"],"keyword_collection":[],"vector_queries":[],"page_index":[3]}"#;
const PLAN_FOUR: &str =
    r#"{"info_needs":["who"],"tools":["page_index"],"keyword_collection":[],"vector_queries":[],"page_index":[4]}"#;

/// Two rounds, the first of which reads page 3 and the second page 4; the integration replies are given.
fn ask(integrations: &[&str]) -> (calls::Scripted, Asked) {
    let before = [("gam.plan", PLAN), ("gam.plan", PLAN_FOUR), ("gam.info_check", r#"{"enough":false}"#)];
    let integrations: Vec<(&str, &str)> = integrations.iter().map(|reply| ("gam.integrate", *reply)).collect();
    let after = [("gam.follow_up", r#"{"new_requests":["Who?"]}"#), ("answer", "Tom Reed.")];
    let caller = script(&[&before[..], &integrations, &after].concat());
    let settings = Settings::default().with_options(gam::Options { max_iterations: 2, ..gam::Options::default() });
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings);
    (caller, asked)
}

/// The notes that the responder receives.
fn check(integrations: &[&str], notes: &str) {
    let (caller, asked) = ask(integrations);
    let answer = asked.answer.expect("a reply that is no use is no error");
    assert_eq!(answer.answer, "Tom Reed.");
    assert_eq!(input(&calls_of("answer", &caller)[0], "CONTEXT"), notes, "{integrations:?}");
}

const FIRST: &str = r#"{"content":"Ada married Tom.","sources":[3]}"#;

#[test]
fn new_notes_replace_the_old_ones() {
    check(
        &[FIRST, r#"{"content":"  Ada married Tom Reed in 1911.\n","sources":[3,4]}"#],
        "Ada married Tom Reed in 1911.",
    );
}

#[test]
fn notes_that_make_no_sense_leave_the_old_ones() {
    check(&[FIRST, "Ada?", r#"{"content":"Ada"}"#], "Ada married Tom.");
    check(&[FIRST, r#"{"content":"Invented.","sources":[2]}"#], "Ada married Tom.");
    check(&[FIRST, r#"{"content":"Invented.","sources":[2],"note":"x"}"#], "Ada married Tom.");
    let (_, asked) = ask(&[FIRST, r#"{"content":"Invented.","sources":[2]}"#]);
    assert_eq!(fallbacks(&asked.events), [("gam.integrate", "page 2 was not shown")]);
}

#[test]
fn the_integration_agent_sees_the_notes_so_far_and_may_keep_their_sources() {
    let (caller, asked) = ask(&[FIRST, r#"{"content":"Ada married Tom Reed.","sources":[3,4,3]}"#]);
    let [first, second] = &calls_of("gam.integrate", &caller)[..] else { panic!("there are two rounds") };
    let shown = |call| (input(call, "EVIDENCE_CONTEXT"), input(call, "RESULT"));
    assert_eq!(input(second, "RESULT_SOURCES"), "3");
    let page_3 = "1. [page_index](3) Ada Brook married the boat builder Tom Reed in 1911.";
    assert_eq!(shown(first), (page_3.into(), String::new()));
    let page_4 = "1. [page_index](4) The new lamp was bought in Paris for 900 crowns.";
    assert_eq!(shown(second), (page_4.into(), "Ada married Tom.".into()));
    assert_eq!(schema(second)["properties"]["sources"]["items"]["enum"], serde_json::json!([3, 4]));
    // The judge and the follow-up see only the notes.
    assert_eq!(input(&calls_of("gam.info_check", &caller)[0], "RESULT"), "Ada married Tom.");
    assert_eq!(input(&calls_of("gam.follow_up", &caller)[0], "RESULT"), "Ada married Tom.");
    let pages: Vec<i64> = asked.answer.expect("all is scripted").citations.iter().map(|place| place.page).collect();
    assert!(pages.iter().all(|page| [3, 4].contains(page)), "{pages:?}");
}

#[test]
fn notes_that_only_state_that_there_is_nothing_leave_the_old_ones() {
    for nothing in ["The pages do not say in which year.", "No relevant information was found.", "None."] {
        let nothing = serde_json::json!({ "content": nothing, "sources": [] }).to_string();
        check(&[FIRST, &nothing], "Ada married Tom.");
        // They are no notes either: there is nothing to judge.
        let (caller, _) = ask(&[&nothing]);
        assert_eq!(calls_of("gam.info_check", &caller).len(), 0, "{nothing}");
    }
}

#[test]
fn notes_that_say_nothing_rest_on_nothing() {
    let (caller, _) = ask(&[r#"{"content":" ","sources":[3]}"#, FIRST]);
    assert_eq!(input(&calls_of("gam.integrate", &caller)[1], "RESULT"), "");
}

#[test]
fn pages_without_room_are_read_in_the_next_round() {
    let plan = |tool: &str, keyword: &str, pages: &str| {
        format!(
            r#"{{"info_needs":["who"],"tools":["{tool}"],"keyword_collection":["{keyword}"],"vector_queries":[],"page_index":{pages}}}"#
        )
    };
    let caller = script(&[
        ("gam.plan", &plan("page_index", "unused", "[1,2,3,4]")),
        ("gam.plan", &plan("keyword", "lamp", "[]")),
        ("gam.integrate", r#"{"content":"Ada lit the lamp.","sources":[1]}"#),
        ("gam.integrate", r#"{"content":"Ada married Tom Reed.","sources":[3]}"#),
        ("gam.info_check", r#"{"enough":false}"#),
        ("gam.follow_up", r#"{"new_requests":["Who?"]}"#),
        ("answer", "Tom Reed."),
    ]);
    let settings = Settings {
        evidence_tokens: Some(46),
        ..Settings::default().with_options(gam::Options { max_iterations: 2, ..gam::Options::default() })
    };
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings);
    asked.answer.expect("all is scripted");
    let left_out: Vec<(&[i64], &[i64])> = asked.events.iter().filter_map(evidence).collect();
    // Page 4, which both rounds find, and page 3; page 1 is in the notes.
    assert_eq!(left_out, [(&[1, 2][..], &[3, 4][..]), (&[4, 3], &[])]);
}

#[test]
fn no_notes_are_written_when_no_page_fits() {
    let caller =
        script(&[("gam.plan", PLAN), ("gam.follow_up", r#"{"new_requests":[]}"#), ("answer", "I cannot say.")]);
    let settings = Settings {
        evidence_tokens: Some(5),
        ..Settings::default().with_options(gam::Options { max_iterations: 2, ..gam::Options::default() })
    };
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings);
    asked.answer.expect("all is scripted");
    assert_eq!(caller.steps(), ["gam.plan", "gam.follow_up", "gam.plan", "answer"]);
    let left_out: Vec<(&[i64], &[i64])> = asked.events.iter().filter_map(evidence).collect();
    assert_eq!(left_out, [(&[][..], &[3][..]), (&[], &[3])]);
}

/// The pages packed into the prompt and the pages left out.
fn evidence(event: &Event) -> Option<(&[i64], &[i64])> {
    match event {
        Event::Evidence { pages, left_out, .. } => Some((pages, left_out)),
        _ => None,
    }
}

#[test]
fn evidence_is_packed_by_rank_under_the_budget() {
    let all = r#"{"info_needs":["who"],"tools":["page_index"],"keyword_collection":[],"vector_queries":[],"page_index":[1,2,3,4]}"#;
    let check = |budget_tokens: usize, packed: &[i64], not: &[i64]| {
        let caller = script(&[
            ("gam.plan", all),
            ("gam.integrate", FIRST),
            ("gam.info_check", r#"{"enough":true}"#),
            ("answer", "Tom Reed."),
        ]);
        let settings = Settings { evidence_tokens: Some(budget_tokens), ..Settings::default() };
        let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings);
        let packing = asked.events.iter().find_map(evidence);
        assert_eq!(packing, Some((packed, not)), "{budget_tokens} tokens");
        let text = input(&calls_of("gam.integrate", &caller)[0], "EVIDENCE_CONTEXT");
        assert_eq!(text.lines().count(), packed.len());
    };
    // The scripted tokenizer counts 25, 21, 21 and 21 tokens in the lines.
    check(88, &[1, 2, 3, 4], &[]);
    check(87, &[1, 2, 3], &[4]);
    check(46, &[1, 2], &[3, 4]);
    check(45, &[1], &[2, 3, 4]);
    // If the first page does not fit, it is skipped and the next one is tried.
    check(24, &[2], &[1, 3, 4]);
}
