//! MemCoT (paper 001) against scripted models.

mod crash;
mod graph;
mod loops;
mod prompts;
mod prose;
mod recall;
mod windows;

use calls::{Caller, Scripted};
use memory::Settings;
use memory::memcot::{Memcot, Options};

use crate::scratch::{Asked, Scratch, script, sessions};

pub const QUESTION: &str = "What is the name of Bob's dog?";

/// Pages 1 to 3, turns 4 to 11.
pub fn talk() -> Scratch {
    let first = [
        ("Ann", "Hello Bob, how are you?"),
        ("Bob", "Fine. I adopted a dog last week."),
        ("Ann", "What is its name?"),
        ("Bob", "It is Rex. Here is a photo of him."),
    ];
    let second = [("Ann", "How is the dog?"), ("Bob", "Rex likes the beach at Pell.")];
    let tenth = [("Bob", "I moved to Paris."), ("Ann", "Paris is far away.")];
    let source = sessions(
        "talk.json",
        &[
            ("session_1", "8 May, 2023", &first),
            ("session_2", "9 June, 2023", &second),
            ("session_10", "1 July, 2023", &tenth),
        ],
    );
    let scratch = Scratch::new();
    scratch.ingest(&[source], &script(&[]), &settings(Options::default())).expect("nothing is called");
    scratch
}

pub fn settings(options: Options) -> Settings {
    Settings { method: &Memcot, ..Settings::default().with_options(options) }
}

pub fn ask(caller: &dyn Caller, options: Options) -> Asked {
    talk().ask(QUESTION, caller, &settings(options))
}

/// The steps of a script without the prefix `memcot.`.
pub fn steps(caller: &Scripted) -> Vec<&'static str> {
    caller.steps().into_iter().map(|step| step.trim_start_matches("memcot.")).collect()
}

/// A reply of zoom-in.
pub fn zoom_in(ids: &str) -> (&'static str, String) {
    ("memcot.zoom_in", format!(r#"{{"thinking":"t","missing_information":"its name","useful_ids":{ids}}}"#))
}

pub fn zoom_out(ids: &str) -> (&'static str, String) {
    let rest = format!(r#""thinking_choice":"c","missing_information":"","useful_ids":{ids}"#);
    ("memcot.zoom_out", format!(r#"{{"thinking":"t",{rest}}}"#))
}

/// A reply of the judge.
pub fn judge(ids: &str, can_answer: bool, action: &str, queries: &str) -> (&'static str, String) {
    let rest = format!(r#""can_answer":{can_answer},"action":"{action}","new_queries":{queries}"#);
    ("memcot.judge", format!(r#"{{"thinking":"t","useful_id":{ids},{rest}}}"#))
}

/// A reply of the responder.
pub fn respond(text: &str) -> (&'static str, String) {
    ("memcot.respond", text.to_owned())
}

pub fn scripted(answers: &[(&'static str, String)]) -> Scripted {
    script(&answers.iter().map(|(step, text)| (*step, text.as_str())).collect::<Vec<_>>())
}
