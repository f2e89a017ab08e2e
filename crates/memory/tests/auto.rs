//! The choice of a method.

use calls::Scripted;
use memory::auto::Auto;
use memory::gam::Gam;
use memory::rag::Rag;
use memory::{Missing, Profile, Settings};
use sources::Source;

use crate::scratch::{CONTEXT_TOKENS, Scratch, document, script};

fn auto(profile: Profile) -> Settings {
    Settings { profile: Some(profile), ..Settings::new(&Auto) }
}

/// A text of more tokens than any class answers from whole.
fn long() -> Source {
    let section = |number: usize| format!("Part {number}. {}", "Ada keeps the lamp and reads. ".repeat(60));
    let sections: Vec<String> = (0..16).map(section).collect();
    document("long.txt", &sections.iter().map(String::as_str).collect::<Vec<_>>())
}

fn caller() -> Scripted {
    let gam = ["gam.memorize", "gam.plan", "gam.integrate", "gam.follow_up"];
    gam.into_iter()
        .fold(script(&[("answer", "Ada."), ("answer.verify", "yes")]), |script, step| script.answer(step, "none"))
}

/// Ingests and asks by the choice; the method that answered, and why.
fn chosen(source: Source, settings: &Settings) -> (Scratch, &'static str, String) {
    let scratch = Scratch::new();
    scratch.ingest(&[source], &caller(), settings).expect("the script is whole");
    let answer = scratch.ask("Who keeps the lamp?", &caller(), settings).answer.expect("all is prepared");
    (scratch, answer.method, answer.chosen.expect("the choice has a reason"))
}

#[test]
fn a_short_text_is_answered_from_whole_and_needs_no_preparation() {
    for profile in [Profile::Small, Profile::Paper] {
        let source = document("lamp.txt", &["Ada keeps the lamp.", "Tom builds boats."]);
        let (scratch, method, why) = chosen(source, &auto(profile));
        assert_eq!(method, "direct");
        let limit = if profile == Profile::Small { 1024 } else { CONTEXT_TOKENS / 2 };
        let said = format!(
            "the text has 9 tokens, and scripted (profile {profile}) answers from up to {limit} tokens at once"
        );
        assert_eq!(why, said);
        assert_eq!(scratch.missing(&Settings::new(&Rag)), Missing { calls: 0, vectors: 2 }, "nothing was embedded");
    }
}

#[test]
fn the_paths_of_many_short_documents_count() {
    let scratch = Scratch::new();
    let path = |number| format!("notes of the keeper/part {number} of many notes.txt");
    let sources: Vec<_> = (0..400).map(|number| document(&path(number), &["Ada keeps the lamp."])).collect();
    scratch.ingest(&sources, &caller(), &auto(Profile::Paper)).expect("the script is whole");
    let answer = scratch.ask("Who keeps the lamp?", &caller(), &auto(Profile::Paper)).answer.expect("all is prepared");
    let why = answer.chosen.expect("the choice has a reason");
    assert_eq!(answer.method, "gam", "{why}");
}

#[test]
fn a_small_model_retrieves_from_a_long_text() {
    let (scratch, method, why) = chosen(long(), &auto(Profile::Small));
    assert_eq!(method, "rag");
    assert!(why.ends_with("retrieves once and answers"), "{why}");
    let limits = " bytes, and scripted (profile small) answers from up to 1024 tokens (at most 8192 bytes) at once; ";
    assert!(why.starts_with("the text has ") && why.contains(limits), "both units are named: {why}");
    assert!(scratch.missing(&Settings::new(&Gam)).calls > 0, "nothing was memorised");
}

#[test]
fn a_large_model_does_research_in_a_long_text() {
    let (_, method, why) = chosen(long(), &auto(Profile::Paper));
    assert_eq!(method, "gam");
    assert!(why.ends_with("or of unknown size, does research"), "{why}");
}

#[test]
fn what_is_ready_answers_by_the_chosen_method() {
    let scratch = Scratch::new();
    scratch.ingest(&[long()], &caller(), &auto(Profile::Small)).expect("the script is whole");
    let asked = scratch.ask_what_is_ready("Who?", &caller(), &auto(Profile::Paper), "it is late");
    let answer = asked.answer.expect("something is ready");
    assert!(answer.chosen.is_some() && answer.note.is_some_and(|note| note.contains("are prepared for gam")));
}
