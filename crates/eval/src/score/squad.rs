//! f1:squad and em:squad (Rajpurkar et al. 2016): GAM on HotpotQA and NarrativeQA, ComoRAG on its free answers.

use super::words::{best, f1, squad_words};

/// The F1 of words, the best over the gold answers.
pub fn f1_squad(prediction: &str, golds: &[String]) -> f64 {
    let prediction = squad_words(prediction);
    best(golds, |gold| f1(&prediction, &squad_words(gold)))
}

/// 1 if the words are those of a gold answer.
pub fn em_squad(prediction: &str, golds: &[String]) -> f64 {
    let prediction = squad_words(prediction);
    best(golds, |gold| f64::from(prediction == squad_words(gold)))
}
