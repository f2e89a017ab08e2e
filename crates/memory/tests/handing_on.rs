//! The output of the researcher for the responder: the three output forms (paper 002, table 4).

use calls::Scripted;
use memory::gam::OutputForm;
use memory::{Event, Settings, gam};

use crate::scratch::{Scratch, calls_of, document, input, script};

const QUESTION: &str = "Whom did Ada Brook marry, and when?";

/// Runs one round that reads pages 1, 3 and 4 and returns these notes; checks the responder's prompt.
fn check(output: OutputForm, integration: &str, want: &str) {
    let caller = script(&[
        ("gam.plan", &pages("[4,1,3]")),
        ("gam.integrate", integration),
        ("gam.info_check", r#"{"enough":true}"#),
        ("answer", "She married Tom Reed in 1911."),
    ]);
    let settings =
        Settings::default().with_options(gam::Options { output, max_iterations: 1, ..gam::Options::default() });
    let answer = Scratch::lighthouse().ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
    let call = calls_of("answer", &caller).remove(0);
    let text = &call.prompt.messages()[1].content;
    let context = text.strip_prefix("CONTEXT:\n").and_then(|text| text.split("\n\nQUESTION:\n").next());
    assert_eq!(context, Some(want), "{output}");
    assert_eq!(input(&call, "QUESTION"), QUESTION);
    let best = &answer.citations[0];
    assert_eq!((best.page, best.quote.as_str()), (3, "Ada Brook married the boat builder Tom Reed in 1911."));
}

const NOTES: &str = r#"{"content":"Ada Brook married Tom Reed.","sources":[3,1]}"#;

#[test]
fn the_notes_alone() {
    check(OutputForm::Integration, NOTES, "Ada Brook married Tom Reed.");
}

#[test]
fn the_notes_and_the_pages_that_they_rest_on() {
    let want = "Ada Brook married Tom Reed.\n\n\
        1. [source](3) Ada Brook married the boat builder Tom Reed in 1911.\n\
        2. [source](1) The keeper Ada Brook lit the lamp of the lighthouse every evening at six.";
    check(OutputForm::Pages, NOTES, want);
}

#[test]
fn the_notes_and_the_sentences_that_bear_on_them() {
    let want = "Ada Brook married Tom Reed.\n\n\
        1. Ada Brook married the boat builder Tom Reed in 1911.\n\
        2. The keeper Ada Brook lit the lamp of the lighthouse every evening at six.";
    check(OutputForm::Extraction, NOTES, want);
}

#[test]
fn notes_without_sources_rest_on_all_that_was_read() {
    let want = "Ada.\n\n\
        1. [source](4) The new lamp was bought in Paris for 900 crowns.\n\
        2. [source](1) The keeper Ada Brook lit the lamp of the lighthouse every evening at six.\n\
        3. [source](3) Ada Brook married the boat builder Tom Reed in 1911.";
    check(OutputForm::Pages, r#"{"content":"Ada.","sources":[]}"#, want);
}

#[test]
fn a_page_that_the_notes_no_longer_name_is_still_evidence() {
    let notes = r#"{"content":"Ada Brook married Tom Reed.","sources":[4]}"#;
    check(OutputForm::Integration, notes, "Ada Brook married Tom Reed.");
}

#[test]
fn pages_are_handed_on_when_the_notes_stay_empty() {
    let want = "1. [source](4) The new lamp was bought in Paris for 900 crowns.\n\
        2. [source](1) The keeper Ada Brook lit the lamp of the lighthouse every evening at six.\n\
        3. [source](3) Ada Brook married the boat builder Tom Reed in 1911.";
    for output in [OutputForm::Integration, OutputForm::Pages, OutputForm::Extraction] {
        for integration in [r#"{"content":"","sources":[3]}"#, r#"{"content":"\n","sources":[]}"#, "no notes"] {
            check(output, integration, want);
        }
    }
}

#[test]
fn extraction_that_is_too_long_is_packed() {
    let sentence = |year: usize| format!("{}and they married in {year}.", "Ada Brook met Tom Reed, ".repeat(80));
    let sentences: Vec<String> = (1911..=1914).map(sentence).collect();
    let sections: Vec<&str> = sentences.iter().map(String::as_str).collect();
    let scratch = Scratch::new();
    let settings = Settings {
        page_tokens: Some(600),
        ..Settings::default().with_options(gam::Options {
            output: OutputForm::Extraction,
            max_iterations: 2,
            ..gam::Options::default()
        })
    };
    let memorizer = Scripted::new(2048).answer("gam.memorize", "They married.");
    scratch.ingest(&[document("pell.txt", &sections)], &memorizer, &settings).expect("all is scripted");

    let caller = Scripted::new(2048)
        .answer("gam.plan", pages("[1,2]"))
        .answer("gam.plan", pages("[3,4]"))
        .answer("gam.integrate", r#"{"content":"They married.","sources":[1,2]}"#)
        .answer("gam.integrate", r#"{"content":"They married.","sources":[1,2,3,4]}"#)
        .answer("gam.info_check", r#"{"enough":false}"#)
        .answer("gam.follow_up", r#"{"new_requests":[]}"#)
        .answer("answer", "In 1911.");
    let asked = scratch.ask(QUESTION, &caller, &settings);
    asked.answer.expect("what does not fit is left out");
    let packed = asked.events.iter().rev().find_map(|event| match event {
        Event::Evidence { step, pages, left_out, .. } if step == "answer" => Some((pages.len(), left_out.len())),
        _ => None,
    });
    assert_eq!(packed, Some((2, 2)));
    // Half of the context is 1,024 tokens; a numbered sentence has 488 tokens.
    let want = format!("They married.\n\n1. {}\n2. {}", sentences[0], sentences[1]);
    assert_eq!(input(&calls_of("answer", &caller)[0], "CONTEXT"), want);
}

/// A plan that requests pages by number.
fn pages(list: &str) -> String {
    let rest = r#""tools":["page_index"],"keyword_collection":[],"vector_queries":[],"page_index":"#;
    format!(r#"{{"info_needs":["who"],{rest}{list}}}"#)
}
