//! Fits and measures the probability that the evidence holds an answer. For each question there are four cases: its own
//! paragraph, the paragraph of the same article that matches it best without holding the answer, the paragraphs of the
//! article, and the same without those that hold the answer. Evidence is in the order in which it matches the question.

use memory::grounding::{self, ABSTENTION_FEATURES, Draft};

use crate::data::Item;
use crate::{Done, data, logistic};

const COUNT: usize = ABSTENTION_FEATURES.len();
/// The features of a case and whether it has an answer.
type Case = ([f64; COUNT], bool);

/// Fits on training questions and measures on a set.
pub fn fit(file: &str, set: &str) -> Done {
    let weights = logistic::fit(&cases(&data::train(&[file])?));
    println!("const ANSWERABLE: [f64; 9] = {};", weights.table());
    let items = data::set(set)?;
    report(&cases(&items).iter().map(|(x, truth)| (weights.probability(x), *truth)).collect::<Vec<_>>());
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

pub fn report(cases: &[(f64, bool)]) {
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
