//! A rule-based model finds every needle through all of GAM: it answers from whatever its prompt shows, so a missing
//! value was lost by paging, by a tool, or by a wrong page number.

use memory::{Answer, Event, Settings};

use crate::haystack::{Barn, Random, Sample, TASKS, Task};
use crate::oracle;
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, document};

const SEEDS: u64 = 3;
const WORDS: usize = 6000;

/// Memorises a sample and asks its question.
fn ask(sample: &Sample, settings: &Settings) -> (Answer, Vec<Event>) {
    let scratch = Scratch::new();
    let oracle = Rules::new(CONTEXT_TOKENS, oracle::reply);
    let source = document("haystack.txt", &[&sample.text]);
    scratch.ingest(&[source], &oracle, settings).expect("every page can be memorised");
    let asked = scratch.ask(&sample.question, &oracle, settings);
    (asked.answer.expect("every prompt fits"), asked.events)
}

/// RULER's score: the share of the values that the answer contains.
fn score(sample: &Sample, answer: &str) -> f64 {
    let found = sample.values.iter().filter(|value| answer.contains(*value)).count();
    found as f64 / sample.values.len() as f64
}

fn check(task: &Task, barn: &Barn) {
    let mut scores = Vec::new();
    for seed in 0..SEEDS {
        let sample = barn.sample(task, WORDS, &mut Random::new(seed));
        let (answer, _) = ask(&sample, &Settings::default());
        scores.push(score(&sample, &answer.answer));
        let holds = |quote: &str| sample.values.iter().any(|value| quote.contains(value));
        let astray = answer.citations.iter().find(|place| !holds(&place.quote));
        assert!(astray.is_none(), "{}, seed {seed}: {astray:?}", task.name);
    }
    println!("{}: {scores:?}", task.name);
    assert!(scores.iter().all(|score| *score >= 1.0), "{}: {scores:?}", task.name);
}

#[test]
fn rules_find_every_needle() {
    let Some(barn) = Barn::open() else { return };
    TASKS.iter().for_each(|task| check(task, &barn));
}

#[test]
fn a_needle_cut_in_two_by_the_end_of_a_page_is_found_by_page_number() {
    let sample = Sample {
        text: format!(
            "{}One of the special magic numbers for grey-cat is: 1234567. {}",
            "The grass is green. ".repeat(40),
            "The sky is blue. ".repeat(40)
        ),
        question: "What is the special magic number for grey-cat mentioned in the provided text?".into(),
        values: vec!["1234567".into()],
    };
    let mut by_number = 0;
    // The needle follows 200 tokens and has 13 tokens.
    for page_tokens in 199..216 {
        let (answer, events) = ask(&sample, &Settings { page_tokens: Some(page_tokens), ..Settings::default() });
        assert!(score(&sample, &answer.answer) >= 1.0, "pages of {page_tokens} tokens: {}", answer.answer);
        by_number +=
            events.iter().filter(|event| matches!(event, Event::Search { tool, .. } if tool == "page_index")).count();
    }
    assert!(by_number > 0, "no needle was cut so that it had to be found by number");
}
