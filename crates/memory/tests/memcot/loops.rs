//! Every branch of the loop (sections 4.1 and 4.3): which calls are made, how many, and when the loop ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{Call, Scripted, reading};
use memory::memcot::Options;
use memory::{Answer, Profile, Settings};
use store::Layer;

use super::{QUESTION, ask, judge, respond, scripted, settings, steps, talk, zoom_in, zoom_out};
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, calls_of, document, fallbacks, input};

/// Asks with a script in at most `most` steps; `want` lists the calls.
fn check(most: usize, answers: &[(&'static str, String)], want: &[&str]) -> (Answer, Scripted) {
    let caller = scripted(answers);
    let asked = ask(&caller, Options { steps: most, ..Options::default() });
    let answer = asked.answer.unwrap_or_else(|error| panic!("{error} after {:?}", caller.steps()));
    assert_eq!(steps(&caller), want, "in {most} steps of {answers:?}");
    assert_eq!(answer.usage.calls, want.len());
    (answer, caller)
}

const STEP: [&str; 3] = ["zoom_in", "zoom_out", "judge"];

#[test]
fn what_suffices_is_answered_from() {
    let script = [zoom_in("[5]"), zoom_out("[7]"), judge("[7]", true, "Break", "[]"), respond("It is Rex.")];
    let (answer, caller) = check(8, &script, &["zoom_in", "zoom_out", "judge", "respond"]);
    assert_eq!(answer.answer, "It is Rex.");
    let quotes: Vec<(&str, i64)> = answer.citations.iter().map(|place| (place.quote.as_str(), place.page)).collect();
    assert_eq!(quotes, [("Bob (D1:4): It is Rex. Here is a photo of him.", 1)]);
    // The judge has seen both; only the turn that it kept is in memory.
    let seen = input(&calls_of("memcot.judge", &caller)[0], "NEW_INFORMATION");
    assert_eq!(seen.lines().map(|line| &line[..3]).collect::<Vec<_>>(), ["[5]", "[7]"]);
    let known = input(&calls_of("memcot.respond", &caller)[0], "SHORT_MEMORY");
    assert_eq!(known, "[7] (8 May, 2023) Bob (D1:4): It is Rex. Here is a photo of him.");
}

#[test]
fn a_small_model_reads_the_turns_of_the_memory_and_then_the_whole_text() {
    let check = |readings: &[&str], short: Option<&str>, fallbacks_wanted: usize| {
        let script = [zoom_in("[5]"), zoom_out("[7]"), judge("[7]", true, "Break", "[]")];
        let caller = scripted(&script).with_adapter(reading::ADAPTER);
        let caller = readings.iter().fold(caller, |caller, reading| caller.answer("answer.read", *reading));
        let small = Settings { profile: Some(Profile::Small), ..settings(Options::default()) };
        let asked = talk().ask(QUESTION, &caller, &small);
        let fallbacks = fallbacks(&asked.events).len();
        let answer = asked.answer.expect("a reading is enough");
        assert_eq!((answer.short.as_deref(), fallbacks), (short, fallbacks_wanted), "{readings:?}");
        assert_eq!(answer.abstained, Some(short.is_none()));
        assert!(calls_of("memcot.respond", &caller).is_empty());
        (answer, calls_of("answer.read", &caller).len())
    };
    let (answer, calls) = check(&["Rex"], Some("Rex"), 0);
    assert_eq!(
        (answer.statements[0].citation.as_ref().map(|place| place.page), calls),
        (Some(1), 3),
        "the block and two sentences"
    );
    check(&[reading::NOT_FOUND, "Rex"], Some("Rex"), 1);
    check(&[reading::NOT_FOUND], None, 1);
}

#[test]
fn a_step_that_finds_nothing_has_no_windows_and_its_query_has_failed() {
    let first = [zoom_in("[]"), judge("[]", false, "Break", r#"["adopted a dog","dog name"]"#)];
    let second = [zoom_in("[7]"), zoom_out("[]"), judge("[7]", true, "Delete", "[]"), respond("Rex")];
    let want = ["zoom_in", "judge", "zoom_in", "zoom_out", "judge", "respond"];
    let (_, caller) = check(8, &[&first[..], &second].concat(), &want);
    let [first, second] = &calls_of("memcot.judge", &caller)[..] else { panic!("two steps") };
    let failed = |call| input(call, "FAILED_QUERIES");
    assert_eq!(failed(first), "- Root: \"What is the name of Bob's dog?\" missed: its name");
    assert_eq!(failed(second), failed(first));
    assert_eq!(input(first, "NEW_INFORMATION"), "Nothing.");
    assert_eq!(input(&calls_of("memcot.zoom_in", &caller)[1], "SEARCH_QUERIES"), "- adopted a dog\n- dog name");
}

#[test]
fn the_trajectory_names_what_was_done_to_the_query() {
    let script = [
        zoom_in("[]"),
        judge("[]", false, "Break", r#"["a cat"]"#),
        judge("[]", false, "Delete", r#"["its colour"]"#),
        judge("[]", false, "Break", r#"["a horse"]"#),
        judge("[]", false, "Break", r#"["a cow"]"#),
        ("answer", "Rex.".to_owned()),
    ];
    let want = ["zoom_in", "judge", "zoom_in", "judge", "zoom_in", "judge", "zoom_in", "judge", "answer"];
    let (_, caller) = check(4, &script, &want);
    let failed = input(&calls_of("memcot.judge", &caller)[3], "FAILED_QUERIES");
    let want = "- Break: \"a cat\" missed: its name\n- Delete: \"its colour\" missed: its name\n- Break: \"a horse\" missed: its name";
    assert_eq!(failed, want, "the newest three");
}

#[test]
fn a_search_that_never_suffices_takes_three_calls_a_step_and_one() {
    for most in [1, 2, 3, 8] {
        let mut script = vec![zoom_in("[5]"), zoom_out("[7]"), respond("Rex")];
        let query = |step| format!(r#"["dog number {step}"]"#);
        script.extend((0..most).map(|step| judge("[5]", false, "Break", &query(step))));
        let mut want = STEP.repeat(most);
        want.push("respond");
        // The answer is forced.
        let (answer, _) = check(most, &script, &want);
        assert_eq!(answer.answer, "Rex");
    }
}

#[test]
fn a_step_is_three_rounds_of_calls() {
    for most in [1, 2, 3] {
        let judged = AtomicUsize::new(0);
        let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| match call.step {
            "memcot.zoom_in" => zoom_in("[5]").1,
            "memcot.zoom_out" => zoom_out("[7]").1,
            "memcot.judge" => {
                let query = format!(r#"["dog number {}"]"#, judged.fetch_add(1, Ordering::Relaxed));
                judge("[5]", false, "Break", &query).1
            }
            _ => "Rex".to_owned(),
        });
        let options = Options { steps: most, ..Options::default() };
        assert_eq!(ask(&caller, options).answer.expect("an answer is given").answer, "Rex");
        assert_eq!(caller.rounds(), 3 * most + 1, "{most} steps");
    }
}

#[test]
fn queries_that_failed_are_asked_for_once_more_and_then_the_search_ends() {
    let root = r#"["the NAME of Bob's dog, what is?"]"#;
    let no = || judge("[]", false, "Break", root);
    // A new query at the second attempt.
    let script = [zoom_in("[]"), no(), judge("[]", false, "Delete", r#"["Rex"]"#), judge("[]", true, "Break", "[]")];
    let script = [&script[..], &[judge("[]", false, "Break", "[]"), ("answer", "Rex.".into())]].concat();
    // The memory is empty, so the third verdict must be wrong: the judge is called again for queries.
    let (_, caller) = check(8, &script, &["zoom_in", "judge", "judge", "zoom_in", "judge", "judge", "answer"]);
    let tries = calls_of("memcot.judge", &caller);
    assert!(!input(&tries[0], "FAILED_QUERIES").contains("keywords"));
    assert!(input(&tries[1], "FAILED_QUERIES").contains("use single keywords"));
    assert_ne!(tries[0].sampling.seed, tries[1].sampling.seed);
    // No new query: an empty memory falls back to the whole text, any other is answered from.
    let script = [zoom_in("[]"), no(), ("answer", "Rex.".into())];
    check(8, &script, &["zoom_in", "judge", "judge", "answer"]);
    let none = judge("[7]", false, "Break", "[]");
    let script = [zoom_in("[7]"), zoom_out("[]"), none, respond("Rex")];
    check(8, &script, &["zoom_in", "zoom_out", "judge", "judge", "respond"]);
    // The last step requests no queries, since no search would follow.
    check(1, &script, &["zoom_in", "zoom_out", "judge", "respond"]);
}

#[test]
fn what_was_perceived_is_kept_where_the_judge_can_answer_but_names_no_turn() {
    let script = [zoom_in("[5]"), zoom_out("[7]"), judge("[]", true, "Break", "[]"), respond("Rex")];
    let (answer, caller) = check(8, &script, &["zoom_in", "zoom_out", "judge", "respond"]);
    assert_eq!(answer.answer, "Rex");
    let known = input(&calls_of("memcot.respond", &caller)[0], "SHORT_MEMORY");
    assert_eq!(known.lines().map(|line| &line[..3]).collect::<Vec<_>>(), ["[5]", "[7]"]);
    // A memory that holds turns is answered from as it is.
    let script = [
        zoom_in("[7]"),
        zoom_in("[5]"),
        zoom_out("[]"),
        judge("[7]", false, "Break", r#"["a dog"]"#),
        judge("[]", true, "Break", "[]"),
        respond("Rex"),
    ];
    let want = ["zoom_in", "zoom_out", "judge", "zoom_in", "zoom_out", "judge", "respond"];
    let (_, caller) = check(8, &script, &want);
    assert!(!input(&calls_of("memcot.respond", &caller)[0], "SHORT_MEMORY").contains("[5]"));
}

#[test]
fn a_query_has_not_failed_if_the_judge_kept_a_turn_at_either_attempt() {
    for (first, second) in [("[7]", "[7]"), ("[]", "[7]")] {
        let script = [
            zoom_in("[7]"),
            zoom_in("[]"),
            zoom_out("[]"),
            judge(first, false, "Break", "[]"),
            judge(second, false, "Break", r#"["Rex"]"#),
            judge("[7]", true, "Break", "[]"),
            respond("Rex"),
        ];
        let want = ["zoom_in", "zoom_out", "judge", "judge", "zoom_in", "judge", "respond"];
        let (_, caller) = check(8, &script, &want);
        let failed: Vec<String> =
            calls_of("memcot.judge", &caller).iter().map(|call| input(call, "FAILED_QUERIES")).collect();
        assert!(failed[1].contains("no new query was written") && !failed[1].contains("has failed"), "{}", failed[1]);
        assert_eq!(failed[2], "- Break: \"Rex\" missed: its name", "first {first}, then {second}");
    }
}

#[test]
fn what_the_judge_does_not_keep_has_failed() {
    let script = [
        zoom_in("[5]"),
        zoom_out("[]"),
        judge("[]", false, "Break", r#"["what is the name of bob's dog"]"#),
        judge("[]", false, "Break", r#"["Rex"]"#),
        judge("[5]", true, "Break", "[]"),
        respond("Rex"),
    ];
    let want = ["zoom_in", "zoom_out", "judge", "judge", "zoom_in", "zoom_out", "judge", "respond"];
    check(8, &script, &want);
}

#[test]
fn a_responder_that_does_not_know_lets_the_search_go_on() {
    let more = judge("[4]", true, "Break", r#"["Rex"]"#);
    let script = [zoom_in("[4]"), zoom_out("[]"), more, judge("[4]", true, "Break", "[]")];
    let script = [&script[..], &[respond("No information available."), respond("Rex")]].concat();
    check(8, &script, &["zoom_in", "zoom_out", "judge", "respond", "zoom_in", "zoom_out", "judge", "respond"]);
    let (answer, _) =
        check(2, &script, &["zoom_in", "zoom_out", "judge", "respond", "zoom_in", "zoom_out", "judge", "respond"]);
    assert_eq!(answer.answer, "Rex");
}

#[test]
fn a_refusal_in_words_is_not_the_answer() {
    let script = [zoom_in("[4]"), zoom_out("[]"), judge("[4]", true, "Break", "[]"), ("answer", "Rex.".into())];
    let want = ["zoom_in", "zoom_out", "judge", "respond", "answer"];
    for refusal in ["Not mentioned in the conversation.", "Not in the documents.", "The context does not specify it."] {
        let (answer, _) = check(8, &[&script[..], &[respond(refusal)]].concat(), &want);
        assert_eq!(answer.answer, "Rex.", "{refusal}");
    }
    let said = "He does not mention its name.";
    let (answer, _) = check(8, &[&script[..], &[respond(said)]].concat(), &want[..4]);
    assert_eq!(answer.answer, said);
}

#[test]
fn the_fallback_reads_the_whole_text_if_it_fits() {
    let script = [zoom_in("[4]"), zoom_out("[]"), judge("[4]", true, "Break", "[]"), respond("unknown")];
    let script = [&script[..], &[("answer", "Rex.".into())]].concat();
    let (answer, caller) = check(8, &script, &["zoom_in", "zoom_out", "judge", "respond", "answer"]);
    assert_eq!(answer.answer, "Rex.");
    let context = input(&calls_of("answer", &caller)[0], "CONTEXT");
    assert!(context.contains("=== session_1 ===") && context.contains("Paris is far away."), "{context}");
}

#[test]
fn a_fallback_that_does_not_fit_shows_what_is_known_and_the_nearest_turns() {
    let options = Options { k: 1, window: 1, ..Options::default() };
    let (scratch, settings) = (talk(), settings(options));
    let tokens = || -> usize {
        let pages = scratch.corpus().passages(Layer::Page).expect("the corpus can be read");
        pages.iter().map(|page| page.tokens as usize).sum()
    };
    let talk_tokens = tokens();
    // Another document makes the text longer than the context.
    let long = "Nothing happened. ".repeat(300);
    scratch.ingest(&[document("z.txt", &[&long])], &scripted(&[]), &settings).expect("nothing is called");
    let script = [
        zoom_in("[5]"),
        zoom_in("[10]"),
        zoom_out("[]"),
        judge("[]", false, "Break", r#"["I moved to Paris."]"#),
        judge("[10]", true, "Break", "[]"),
        respond("unknown"),
        ("answer", "Rex.".into()),
    ];
    let want = "\
Session session_1 (talk.json, 8 May, 2023):
4: Ann (D1:1): Hello Bob, how are you?
5: Bob (D1:2): Fine. I adopted a dog last week.
6: Ann (D1:3): What is its name?
Session session_10 (talk.json, 1 July, 2023):
10: Bob (D3:1): I moved to Paris.";
    // With the larger context the text alone would fit, but not with the question and the room for an answer.
    for context_tokens in [talk_tokens + 600, tokens() + 50] {
        let caller = Scripted::new(context_tokens);
        let caller = script.iter().fold(caller, |caller, (step, text)| caller.answer(step, text));
        let asked = scratch.ask("Who adopted a dog?", &caller, &settings);
        let answer = asked.answer.unwrap_or_else(|error| panic!("{error} in {context_tokens}"));
        assert_eq!(input(&calls_of("answer", &caller)[0], "CONTEXT"), want);
        assert!(answer.citations.iter().all(|place| place.page == 1 || place.page == 3), "{:?}", answer.citations);
    }
}

#[test]
fn replies_that_make_no_sense_find_nothing() {
    let nonsense = |step| (step, "I think it is Rex.".to_owned());
    // Zoom-in: called twice, then nothing is useful.
    let script = [nonsense("memcot.zoom_in"), judge("[]", false, "Break", "[]"), ("answer", "Rex.".into())];
    check(8, &script, &["zoom_in", "zoom_in", "judge", "judge", "answer"]);
    // Zoom-out: the result of zoom-in is kept.
    let script = [zoom_in("[7]"), nonsense("memcot.zoom_out"), judge("[7]", true, "Break", "[]"), respond("Rex")];
    check(8, &script, &["zoom_in", "zoom_out", "zoom_out", "judge", "respond"]);
    // The judge: nothing is kept, and no other query is searched.
    let script = [zoom_in("[7]"), zoom_out("[7]"), nonsense("memcot.judge"), ("answer", "Rex.".into())];
    check(8, &script, &["zoom_in", "zoom_out", "judge", "judge", "answer"]);
    // Ids that were not in the prompt are invalid: the second reply counts.
    let script = [zoom_in("[99]"), zoom_in("[7]"), zoom_out("[99]"), judge("[7]", true, "Break", "[]"), respond("Rex")];
    let caller = scripted(&script);
    let asked = ask(&caller, Options::default());
    assert_eq!(asked.answer.expect("the script is whole").answer, "Rex");
    assert_eq!(steps(&caller), ["zoom_in", "zoom_in", "zoom_out", "zoom_out", "judge", "respond"]);
    assert_eq!(fallbacks(&asked.events), [("memcot.zoom_out", "99 was not shown")]);
}

#[test]
fn failures_of_the_engine_are_errors() {
    for (step, before) in [
        ("memcot.zoom_in", vec![]),
        ("memcot.zoom_out", vec![zoom_in("[7]")]),
        ("memcot.judge", vec![zoom_in("[]")]),
        ("memcot.respond", vec![zoom_in("[7]"), zoom_out("[]"), judge("[7]", true, "Break", "[]")]),
    ] {
        let caller = scripted(&before).fail(step, calls::CallError::Closed);
        let asked = ask(&caller, Options::default());
        assert!(matches!(asked.answer, Err(memory::MemoryError::Call(calls::CallError::Closed))), "{step}");
    }
}
