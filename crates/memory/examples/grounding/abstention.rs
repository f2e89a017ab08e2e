//! Fits and measures the probability that the evidence holds an answer. For each question there are two cases: with its own
//! paragraph, and with the paragraph of the same article that matches it best without holding the answer.

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
    report(&pairs.into_iter().map(|(draft, truth)| (draft.choose(None).answerable, truth)).collect::<Vec<_>>());
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

/// Drafts with the gold paragraph (true) and with the best wrong one (false).
pub fn pairs(items: &[Item]) -> Vec<(Draft, bool)> {
    let mut pairs = Vec::new();
    for item in items {
        let Some(wrong) = best_wrong(item) else { continue };
        pairs.push((Draft::new(&item.question, &[&item.evidence[item.gold]]), true));
        pairs.push((Draft::new(&item.question, &[wrong]), false));
    }
    pairs
}

/// The other paragraph whose best sentence matches the question best, among those without the answer.
pub fn best_wrong(item: &Item) -> Option<&str> {
    let holds = |text: &str| item.answers.iter().any(|answer| text.to_lowercase().contains(&answer.to_lowercase()));
    let others = item.evidence.iter().enumerate().filter(|(at, text)| *at != item.gold && !holds(text));
    let context = |text: &str| Draft::new(&item.question, &[text]).features()[1];
    others.map(|(_, text)| (context(text), text)).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, text)| text.as_str())
}
