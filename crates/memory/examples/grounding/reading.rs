//! Fits the probability that a model's reading is right to results of the benchmark: the weights of all questions, and their
//! quality when each half of the questions is judged by the weights of the other.

use std::fs;

use memory::grounding::{READING_SIGNALS, Signals};
use serde_json::Value;

use crate::abstention::report;
use crate::{Done, logistic};

type Case = ([f64; READING_SIGNALS.len()], bool);

pub fn fit(file: &str) -> Done {
    let lines = fs::read_to_string(file)?;
    let cases: Vec<Case> = lines.lines().filter_map(|line| case(&serde_json::from_str(line).ok()?)).collect();
    println!("const RIGHT: [f64; 6] = {};", logistic::fit(&cases).table());
    let half = |parity: usize| -> Vec<Case> {
        cases.iter().enumerate().filter(|(at, _)| at % 2 == parity).map(|(_, case)| *case).collect()
    };
    let mut crossed = Vec::new();
    for (fitted, judged) in [(half(0), half(1)), (half(1), half(0))] {
        let weights = logistic::fit(&fitted);
        crossed.extend(judged.iter().map(|(x, truth)| (weights.probability(x), *truth)));
    }
    report(&crossed);
    Ok(())
}

/// A question that was answered by a reading.
fn case(line: &Value) -> Option<Case> {
    let signals: Signals = serde_json::from_value(line.get("signals")?.clone()).ok()?;
    let outcome = line["outcome"].as_str()?;
    (outcome != "abstained").then(|| (signals.values(), outcome == "right"))
}
