//! Fits the surface score: a log-linear model over the candidates of a question.
//!
//! For each question the probability of a candidate is softmax(weights * features); the target puts equal mass on the
//! candidates that are an answer exactly, or, where there is none, on those that share most words with one. Adam, seeded
//! order, L2 regularisation.

use memory::Random;
use memory::grounding::{self, FEATURES};

use crate::{Done, data, squad};

/// Candidates of one question as sparse features, and which of them are right.
struct Case {
    candidates: Vec<Vec<(u16, f32)>>,
    right: Vec<usize>,
}

const EPOCHS: usize = 12;
const BATCH: usize = 32;
const RATE: f64 = 0.02;
const L2: f64 = 1e-5;
/// A candidate that shares fewer words with the answer is not taken for right.
const LEAST_F1: f64 = 0.5;
/// Questions of each file are thinned to this number.
const MAX_CASES: usize = 4000;

pub fn surface(files: &[&str]) -> Done {
    let mut cases = Vec::new();
    for file in files {
        let mut items = data::train(&[file])?;
        Random::named(1, file.rsplit('/').next().unwrap_or(file)).shuffle(&mut items);
        items.truncate(MAX_CASES);
        let all = items.len();
        let before = cases.len();
        cases.extend(items.iter().filter_map(case));
        eprintln!("{file}: {} of {all} questions have a right candidate", cases.len() - before);
    }
    let weights = fit(&mut cases);
    println!("const SURFACE: [f32; FEATURES] = [");
    for row in weights.chunks(12) {
        let row: Vec<String> = row.iter().map(|weight| format!("{weight:.3}")).collect();
        println!("    {},", row.join(", "));
    }
    println!("];");
    for (name, weight) in grounding::feature_names().iter().zip(&weights) {
        eprintln!("{name} {weight:.3}");
    }
    Ok(())
}

fn case(item: &data::Item) -> Option<Case> {
    let found = grounding::candidates(&item.question, &item.texts(false), usize::MAX);
    let scores: Vec<f64> = found.iter().map(|candidate| squad::f1(&candidate.text, &item.answers)).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    if best < LEAST_F1 {
        return None;
    }
    let right = scores.iter().enumerate().filter(|(_, score)| **score >= best).map(|(at, _)| at).collect();
    let sparse = |features: &[f32]| {
        let filled = features.iter().enumerate().filter(|(_, value)| **value != 0.0);
        filled.map(|(at, value)| (at as u16, *value)).collect()
    };
    Some(Case { candidates: found.iter().map(|candidate| sparse(&candidate.features)).collect(), right })
}

fn fit(cases: &mut [Case]) -> Vec<f64> {
    let (mut weights, mut first, mut second) =
        (vec![0.0_f64; FEATURES], vec![0.0_f64; FEATURES], vec![0.0_f64; FEATURES]);
    let mut random = Random::named(1, "fit");
    let mut step = 0;
    for epoch in 0..EPOCHS {
        random.shuffle(cases);
        let rate = RATE / (1.0 + epoch as f64);
        let (mut loss, mut best) = (0.0, 0);
        for batch in cases.chunks(BATCH) {
            let mut gradient = vec![0.0_f64; FEATURES];
            for case in batch {
                let (case_loss, hit) = add_gradient(case, &weights, &mut gradient);
                loss += case_loss;
                best += usize::from(hit);
            }
            step += 1;
            (0..FEATURES).for_each(|at| {
                let slope = gradient[at] / batch.len() as f64 + L2 * weights[at];
                first[at] = 0.9 * first[at] + 0.1 * slope;
                second[at] = 0.999 * second[at] + 0.001 * slope * slope;
                let mean = first[at] / (1.0 - 0.9_f64.powi(step));
                let spread: f64 = second[at] / (1.0 - 0.999_f64.powi(step));
                weights[at] -= rate * mean / (spread.sqrt() + 1e-8);
            });
        }
        let n = cases.len() as f64;
        eprintln!("epoch {epoch}: loss {:.4}, best is right {:.3}", loss / n, best as f64 / n);
    }
    weights
}

/// Adds the slope of one question's loss; gives the loss and whether the best candidate is right.
fn add_gradient(case: &Case, weights: &[f64], gradient: &mut [f64]) -> (f64, bool) {
    let score = |candidate: &Vec<(u16, f32)>| -> f64 {
        candidate.iter().map(|(at, value)| weights[usize::from(*at)] * f64::from(*value)).sum()
    };
    let scores: Vec<f64> = case.candidates.iter().map(score).collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exps: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let total: f64 = exps.iter().sum();
    let right: f64 = case.right.iter().map(|at| exps[*at]).sum();
    for (at, candidate) in case.candidates.iter().enumerate() {
        // The target shares its mass among right candidates as the model does: a marginal likelihood.
        let target = if case.right.contains(&at) { exps[at] / right } else { 0.0 };
        let slope = exps[at] / total - target;
        for (feature, value) in candidate {
            gradient[usize::from(*feature)] += slope * f64::from(*value);
        }
    }
    let best = scores.iter().position(|score| *score == top).unwrap_or(0);
    ((total / right).ln(), case.right.contains(&best))
}
