//! Training examples from a corpus: which questions are kept, and what is made of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use calls::{Call, Scripted, ScriptedEmbedder, reading};
use memory::rag::Rag;
use memory::study::{Example, Study, score_reader};
use memory::{Settings, Trace};

use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, block_on, document, script, session};

/// Documents of one block each, which share the words "lamp" and "harbour".
const TEXTS: [&str; 4] = [
    "The keeper Ada Brook bought a lamp for the harbour in Paris in 1911, and the town paid 900 crowns for it that day.",
    "The smith Tom Reed repaired a lamp for the harbour in Lisbon in 1922, and the mayor paid 30 crowns for the work.",
    "The painter Eva Lind painted a lamp of the harbour in Bergen in 1933, and a museum bought the picture in 1940.",
    "The captain Jon Sand lost a lamp near the harbour of Aarhus in 1944, and divers found the wreck again in 1951.",
];

fn corpus() -> Scratch {
    let scratch = Scratch::new();
    let sources: Vec<_> = TEXTS.iter().enumerate().map(|(at, text)| document(&format!("{at}.txt"), &[text])).collect();
    let settings = Settings { method: &Rag, ..Settings::default() };
    scratch.ingest(&sources, &script(&[]), &settings).expect("nothing is called");
    scratch
}

/// The text and the answer in the prompt of a writing call.
fn shown(call: &Call) -> (String, String) {
    let prompt = call.prompt.messages().pop().expect("there is a user turn").content;
    let (text, rest) = prompt.split_once("\n\nANSWER\n").expect("an answer is shown");
    (text.replacen("TEXT\n", "", 1), rest.trim_end_matches("\n\nQUESTION").to_owned())
}

/// Studies the corpus with a writer that makes a question of text and answer, and a reader that knows what was asked for, or
/// reads `wrong`.
fn study(write: impl Fn(&str, &str) -> String + Send + Sync, wrong: Option<&str>, seed: u64) -> Study {
    let asked: Mutex<HashMap<String, String>> = Mutex::default();
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        if call.step == "study.write" {
            let (text, answer) = shown(call);
            let question = write(&text, &answer);
            asked.insert(question.clone(), answer);
            return question;
        }
        let prompt = call.prompt.messages().pop().expect("there is a user turn").content;
        let question = prompt.split_once("QUESTION\n").expect("a question is shown").1;
        wrong.map_or_else(|| asked[question].clone(), ToOwned::to_owned)
    });
    let scratch = corpus();
    let (settings, trace) = (Settings { method: &Rag, ..Settings::default() }, Trace::off());
    let session = session(&caller, &ScriptedEmbedder, &settings, &trace);
    let mut study = Study::new(&scratch.corpus(), 20, seed).expect("the corpus can be read");
    while study.tried() < study.proposed() {
        block_on(study.advance(6, &session)).expect("the rules answer all calls");
    }
    assert!(study.proposed() > 8, "{} proposals", study.proposed());
    assert_eq!(study.kept() + study.dropped.all(), study.proposed(), "every proposal is kept or counted");
    study
}

/// A question of the words of the text without the answer.
fn good(text: &str, answer: &str) -> String {
    format!("What is missing: {}?", text.replace(answer, "").replace('.', ""))
}

#[test]
fn every_question_has_its_block_and_some_have_one_without_the_answer() {
    let study = study(good, None, 1);
    assert!(study.kept() > 8, "{:?}", study.dropped);
    let (training, held_out) = study.examples();
    let all: Vec<&Example> = training.iter().chain(&held_out).collect();
    let (without, with): (Vec<&Example>, Vec<&Example>) =
        all.iter().partition(|example| example.answer == reading::NOT_FOUND);
    assert_eq!(with.len(), study.kept());
    assert!(!without.is_empty() && without.len() < with.len() / 2, "{} of {}", without.len(), with.len());
    for example in &with {
        assert!(example.passages.iter().any(|(_, text)| text.contains(&example.answer)), "{example:?}");
    }
    for example in without {
        let answered =
            with.iter().find(|other| other.question == example.question).expect("it has an answer elsewhere");
        assert!(example.passages.iter().all(|(_, text)| !text.contains(&answered.answer)), "{example:?}");
    }
    let sizes: Vec<usize> = training.iter().map(|example| example.passages.len()).collect();
    assert!(sizes.contains(&1) && sizes.contains(&3), "{sizes:?}");
}

#[test]
fn held_out_blocks_are_not_shown_in_training() {
    let (training, held_out) = study(good, None, 1).examples();
    let source = |example: &Example| {
        let holding = example.passages.iter().filter(|(_, text)| good(text, &example.answer) == example.question);
        holding.map(|(_, text)| text.clone()).next().expect("the question is of a passage")
    };
    assert!(!training.is_empty() && !held_out.is_empty());
    let sources: Vec<String> =
        held_out.iter().filter(|example| example.answer != reading::NOT_FOUND).map(source).collect();
    let shown: Vec<&String> = training.iter().flat_map(|example| &example.passages).map(|(_, text)| text).collect();
    assert!(sources.iter().all(|source| !shown.contains(&source)));
}

#[test]
fn a_seed_decides_the_examples() {
    let examples = |seed| study(good, None, seed).examples();
    assert_eq!(examples(1), examples(1));
    assert_ne!(examples(1), examples(2));
}

#[test]
fn bad_questions_are_counted_by_reason() {
    let none = study(|_, _| "No question here.".to_owned(), None, 1);
    assert_eq!((none.kept(), none.dropped.no_question), (0, none.proposed()));
    let told = study(|text, answer| format!("Is it {answer} in {text}?"), None, 1);
    assert_eq!((told.kept(), told.dropped.contains_answer), (0, told.proposed()));
    let elsewhere = study(|_, _| "Which whales swim below frozen oceans?".to_owned(), None, 1);
    assert_eq!((elsewhere.kept(), elsewhere.dropped.off_topic), (0, elsewhere.proposed()));
    let same = study(|text, _| format!("What of {}?", &text[..24]), None, 1);
    assert!(same.dropped.repeated > 0 && same.kept() <= 4, "{:?}", same.dropped);
    let other = study(good, Some("something else"), 1);
    assert_eq!((other.kept(), other.dropped.disagreement), (0, other.proposed()));
}

#[test]
fn the_reader_is_scored_under_the_prompt_of_the_examples() {
    let example = |answer: &str| Example {
        passages: vec![("Pell".into(), "The lamp came from Paris.".into())],
        question: "Where did the lamp come from?".into(),
        answer: answer.into(),
    };
    let lines = ["Paris", "the documents", reading::NOT_FOUND].map(|answer| example(answer).line());
    let score = |reply: &str| {
        let caller = Scripted::new(CONTEXT_TOKENS).with_adapter(reading::ADAPTER).answer("study.read", reply);
        let (settings, trace) = (Settings::default(), Trace::off());
        let session = session(&caller, &ScriptedEmbedder, &settings, &trace);
        let scores = block_on(score_reader(&lines, &session)).expect("the script answers");
        (scores.exact, scores.f1, scores.examples)
    };
    assert_eq!(score("paris"), (1.0 / 3.0, 1.0 / 3.0, 3));
    assert_eq!(score(reading::NOT_FOUND), (1.0 / 3.0, 1.0 / 3.0, 3), "not found is right or wrong");
    assert_eq!(lines[0]["messages"][0]["content"], reading::SYSTEM);
}
