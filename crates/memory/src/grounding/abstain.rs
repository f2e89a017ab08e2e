//! How likely is it that the answer is in the evidence at all? Logistic regression over a few features of the search for
//! it; below [`THRESHOLD`] an answer should be "not in the documents".
//!
//! The margin by which a model prefers the best candidate to "not in the text" is no feature: for SmolLM2-135M it
//! tells questions with an answer from those without with an AUROC of 0.54 only, where the surface score alone has 0.81 (72
//! cases of SQuAD train articles). [`super::Chosen`] returns the margin for larger models.

use super::candidates::Candidate;
use super::passage::Passage;
use super::question::Question;
use super::weights;

/// Features of a question and its evidence, in the order of the weights.
pub const ABSTENTION_FEATURES: [&str; 8] = [
    "best_sentence",
    "best_context",
    "coverage_of_evidence",
    "best_surface",
    "margin_to_second",
    "share_of_best",
    "focus_found",
    "longest_found",
];

/// The probability below which an answer is withheld.
pub const THRESHOLD: f64 = 0.5;

/// The features of a question whose candidates are `candidates`, best first.
pub(super) fn features(question: &Question, passage: &Passage<'_>, candidates: &[Candidate]) -> [f64; 8] {
    let best = passage.sentences.iter().find(|sentence| sentence.rank == 0);
    let found = |term: &String| passage.sentences.iter().any(|sentence| sentence.has(term));
    let terms: Vec<&String> = question.terms.iter().chain(&question.focus).collect();
    let share = terms.iter().filter(|term| found(term)).count() as f64 / terms.len().max(1) as f64;
    let surface = |at: usize| candidates.get(at).map_or(0.0, |candidate| f64::from(candidate.surface));
    let total: f64 =
        candidates.iter().map(|candidate| f64::from(candidate.surface - candidates[0].surface).exp()).sum();
    // Names are what a wrong text lacks most.
    let longest = terms.iter().max_by_key(|term| term.len());
    [
        best.map_or(0.0, |sentence| f64::from(sentence.coverage)),
        best.map_or(0.0, |sentence| f64::from(sentence.context)),
        share,
        surface(0),
        surface(0) - surface(1),
        1.0 / total.max(1.0),
        f64::from(u8::from(question.focus.as_ref().is_some_and(found))),
        f64::from(u8::from(longest.is_some_and(|term| found(term)))),
    ]
}

/// The probability that the evidence holds an answer.
pub(super) fn answerable(features: &[f64; 8]) -> f64 {
    let [bias, weights @ ..] = &weights::ANSWERABLE;
    logistic(bias + features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum::<f64>())
}

/// The probability with these log-odds.
pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
