//! Fits the probability that a model's reading is right to results of the benchmark: the weights of all questions, and their
//! quality when each half of the questions is judged by the weights of the other.

use std::fs;

use memory::grounding::{READING_SIGNALS, Reading, normal_form};
use serde_json::Value;

use crate::abstention::report;
use crate::{Done, logistic};

type Case = ([f64; READING_SIGNALS.len()], bool);

pub fn fit(file: &str) -> Done {
    let lines = fs::read_to_string(file)?;
    let lines: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let questions: Vec<Vec<Case>> = lines.iter().map(cases_of).collect();
    let cases = questions.concat();
    println!("const RIGHT: [f64; {}] = {};", READING_SIGNALS.len() + 1, logistic::fit(&cases).table());
    let half = |parity: usize| -> Vec<Vec<Case>> { questions.iter().skip(parity).step_by(2).cloned().collect() };
    let (mut crossed, mut right, mut possible, mut asked) = (Vec::new(), 0, 0, 0);
    for (fitted, judged) in [(half(0), half(1)), (half(1), half(0))] {
        let weights = logistic::fit(&fitted.concat());
        for readings in judged.iter().filter(|readings| !readings.is_empty()) {
            let rated = readings.iter().map(|(x, truth)| (weights.probability(x), *truth));
            let Some(best) = rated.max_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
            (asked, right) = (asked + 1, right + usize::from(best.1));
            possible += usize::from(readings.iter().any(|(_, truth)| *truth));
            crossed.push(best);
        }
    }
    println!("{asked} questions with readings: the most probable is right for {right}, one of them for {possible}");
    report(&crossed);
    Ok(())
}

/// The readings of a question that has gold answers; all are wrong if the documents do not answer it.
fn cases_of(line: &Value) -> Vec<Case> {
    let readings: Vec<Reading> = serde_json::from_value(line["readings"].clone()).unwrap_or_default();
    let golds: Vec<String> = serde_json::from_value(line["golds"].clone()).unwrap_or_default();
    let is_unanswerable = line["id"].as_str().is_some_and(|id| id.ends_with("_abs"));
    let is_right = |text: &str| golds.iter().any(|gold| overlap(text, gold) >= 0.5);
    let of = |reading: &Reading| (reading.signals.values(), is_right(&reading.text));
    if golds.is_empty() && !is_unanswerable { Vec::new() } else { readings.iter().map(of).collect() }
}

/// The F1 of the words of two answers.
fn overlap(answer: &str, gold: &str) -> f64 {
    let (answer, gold) = (normal_form(answer), normal_form(gold));
    let (answer, mut left): (Vec<&str>, Vec<&str>) = (answer.split(' ').collect(), gold.split(' ').collect());
    let all = (answer.len() + left.len()) as f64;
    let before = left.len();
    for word in answer {
        if let Some(at) = left.iter().position(|other| *other == word) {
            left.swap_remove(at);
        }
    }
    2.0 * (before - left.len()) as f64 / all
}
