//! RULER's generator: its samples have the required properties, and the needles can be found through all of GAM.

use std::collections::HashMap;

use calls::{Agent, Scripted, Tokens};
use eval::qa::Case;
use eval::qa::ruler::{Materials, Task, generate};

use crate::evaluation_data;

fn materials() -> Option<Materials> {
    // The folder itself, which contains words and novels.
    evaluation_data("ruler/nounlist.txt")?;
    Some(Materials::open(&evaluation_data("")?).unwrap())
}

fn tokens(text: &str) -> usize {
    Scripted::new(1).count_tokens(Agent::Responder, text)
}

fn samples(materials: &Materials, task: Task, length: usize, seed: u64) -> Vec<Case> {
    generate(materials, &[task], length, 3, seed, &tokens).cases
}

#[test]
fn every_task_can_be_made_at_any_length_and_is_the_same_again() {
    let Some(materials) = materials() else { return };
    for task in Task::ALL {
        for length in [1000, 5000] {
            let cases = samples(&materials, task, length, 7);
            assert_eq!(cases, samples(&materials, task, length, 7), "{}", task.name);
            assert_ne!(cases, samples(&materials, task, length, 8), "{}", task.name);
            assert_eq!(cases.len(), 3);
            for case in &cases {
                let (text, question) = (&case.sources[0].text, &case.questions[0]);
                let used = tokens(text) + tokens(&question.text);
                // Paragraphs are complete, and cwe's words occur at least three times.
                let least = if task.group == "question answering" { length / 3 } else { length * 3 / 4 };
                assert!(used <= length && used >= least, "{} {length}: {used}", task.name);
                check(task, text, &question.golds);
                for evidence in &question.evidence {
                    let piece = &text[evidence.bytes.clone()];
                    assert!(!piece.is_empty());
                    if task.group == "retrieval" {
                        assert!(question.golds.iter().any(|gold| piece.contains(gold)), "{}: {piece}", task.name);
                    }
                }
            }
        }
    }
}

#[test]
fn tasks_that_cannot_be_made_short_enough_are_left_out_and_listed() {
    let Some(materials) = materials() else { return };
    let task = Task::named("cwe").unwrap();
    let made = generate(&materials, &[task], 150, 3, 7, &tokens);
    assert_eq!(made.cases, []);
    let note = "3 of 3 samples of cwe are left out: they are longer";
    assert!(made.notes.iter().any(|said| said == note), "{:?}", made.notes);
}

/// Checks the properties of a sample of a task.
fn check(task: Task, text: &str, golds: &[String]) {
    let name = task.name;
    match name {
        "vt" => {
            assert_eq!(golds.len(), 5);
            let value = text.split(&format!("VAR {} = ", golds[0])).nth(1).unwrap().lines().next().unwrap();
            assert!(value.parse::<u32>().is_ok(), "{value}");
            for pair in golds.windows(2) {
                let hop = text.find(&format!("VAR {} = VAR {}", pair[1], pair[0])).unwrap();
                assert!(text.find(&format!("VAR {} = ", pair[0])).unwrap() < hop);
            }
        }
        "cwe" | "fwe" => {
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for word in text.split_whitespace().filter(|word| !word.ends_with('.')) {
                *counts.entry(word).or_default() += 1;
            }
            let mut most: Vec<_> = counts.into_iter().collect();
            most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let top: Vec<&str> = most[..golds.len()].iter().map(|(word, _)| *word).collect();
            assert!(golds.iter().all(|gold| top.contains(&gold.as_str())), "{name}: {golds:?} {top:?}");
        }
        "qa_1" => assert!(golds.iter().any(|gold| text.contains(gold)), "{name}: {golds:?}"),
        // Some of HotpotQA's answers are yes or no.
        "qa_2" => assert!(text.starts_with("Document 1:\n")),
        _ => {
            let expect = if matches!(name, "niah_multivalue" | "niah_multiquery") { 4 } else { 1 };
            assert_eq!(golds.len(), expect);
            assert!(golds.iter().all(|gold| text.matches(gold.as_str()).count() == 1), "{name}: {golds:?}");
        }
    }
}
