//! Fits and measures the probability that the evidence holds an answer. For each question there are four cases: its own
//! paragraph, the paragraph of the same article that matches it best without holding the answer, the paragraphs of the
//! article, and the same without those that hold the answer. Evidence is in the order in which it matches the question.

use memory::grounding::{self, ABSTENTION_FEATURES, Draft};

use crate::data::Item;
use crate::{Done, data};

const COUNT: usize = ABSTENTION_FEATURES.len();
const STEPS: usize = 3000;
const RATE: f64 = 0.3;
const L2: f64 = 1e-4;

/// The features of a case and whether it has an answer.
type Case = ([f64; COUNT], bool);

/// Fits on training questions and measures on a set.
pub fn fit(file: &str, set: &str) -> Done {
    let cases = cases(&data::train(&[file])?);
    let n = cases.len() as f64;
    let mean: [f64; COUNT] = std::array::from_fn(|at| cases.iter().map(|(x, _)| x[at]).sum::<f64>() / n);
    let spread: [f64; COUNT] = std::array::from_fn(|at| {
        (cases.iter().map(|(x, _)| (x[at] - mean[at]).powi(2)).sum::<f64>() / n).sqrt().max(1e-9)
    });
    let (mut bias, mut weights) = (0.0, [0.0; COUNT]);
    for _ in 0..STEPS {
        let (mut slope, mut slopes) = (0.0, [0.0; COUNT]);
        for (x, truth) in &cases {
            let scaled: [f64; COUNT] = std::array::from_fn(|at| (x[at] - mean[at]) / spread[at]);
            let sum = bias + scaled.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>();
            let error = 1.0 / (1.0 + (-sum).exp()) - f64::from(u8::from(*truth));
            slope += error / n;
            (0..COUNT).for_each(|at| slopes[at] += error * scaled[at] / n);
        }
        bias -= RATE * slope;
        (0..COUNT).for_each(|at| weights[at] -= RATE * (slopes[at] + L2 * weights[at]));
    }
    let unscaled: [f64; COUNT] = std::array::from_fn(|at| weights[at] / spread[at]);
    let bias = bias - unscaled.iter().zip(&mean).map(|(w, m)| w * m).sum::<f64>();
    let table: Vec<String> = [bias].iter().chain(&unscaled).map(|weight| format!("{weight:.4}")).collect();
    println!("const ANSWERABLE: [f64; 9] = [{}];", table.join(", "));
    let probability = |x: &[f64; COUNT]| {
        let sum = bias + unscaled.iter().zip(x).map(|(weight, x)| weight * x).sum::<f64>();
        1.0 / (1.0 + (-sum).exp())
    };
    let items = data::set(set)?;
    report(&self::cases(&items).into_iter().map(|(x, truth)| (probability(&x), truth)).collect::<Vec<_>>());
    Ok(())
}

/// Measures the weights as they are.
pub fn measure(set: &str) -> Done {
    let pairs = pairs(&data::set(set)?);
    report(
        &pairs
            .into_iter()
            .map(|(draft, truth)| (draft.choose(None).answerable.unwrap_or(0.5), truth))
            .collect::<Vec<_>>(),
    );
    Ok(())
}

fn report(cases: &[(f64, bool)]) {
    println!("{} cases, AUROC {:.3?}, Brier {:.3?}", cases.len(), grounding::auroc(cases), grounding::brier(cases));
    for bin in grounding::reliability(cases, 10) {
        println!("stated {:.2} observed {:.2} of {}", bin.stated, bin.observed, bin.cases);
    }
}

fn cases(items: &[Item]) -> Vec<Case> {
    pairs(items).into_iter().map(|(draft, truth)| (*draft.features(), truth)).collect()
}

/// Paragraphs of an article that are read, as retrieval brings them.
const SHOWN: usize = 5;

/// The cases of questions, and whether each holds an answer.
pub fn pairs(items: &[Item]) -> Vec<(Draft, bool)> {
    let mut pairs = Vec::new();
    for item in items {
        let holds = |text: &str| item.answers.iter().any(|answer| text.to_lowercase().contains(&answer.to_lowercase()));
        let context = |text: &str| Draft::new(&item.question, &[text]).features()[1];
        let mut ranked: Vec<(f64, &str)> = item.evidence.iter().map(|text| (context(text), text.as_str())).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let all: Vec<&str> = ranked.iter().map(|(_, text)| *text).collect();
        let wrong: Vec<&str> = all.iter().copied().filter(|text| !holds(text)).collect();
        let [best, ..] = wrong[..] else { continue };
        let shown = |texts: &[&str]| Draft::new(&item.question, &texts[..texts.len().min(SHOWN)]);
        pairs.push((shown(&[&item.evidence[item.gold]]), true));
        pairs.push((shown(&[best]), false));
        pairs.push((shown(&all), all[..all.len().min(SHOWN)].iter().any(|text| holds(text))));
        pairs.push((shown(&wrong), false));
    }
    pairs
}
