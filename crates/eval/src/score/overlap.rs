//! f1:gam and bleu1, by which the GAM paper scores LoCoMo: overlap of words that are not stemmed.

use super::words::{best, f1, gam_words, shared};

/// The F1 of words, the best over the gold answers; two empty texts are equal.
pub fn f1_gam(prediction: &str, golds: &[String]) -> f64 {
    let prediction = gam_words(prediction);
    best(golds, |gold| {
        let gold = gam_words(gold);
        if prediction.is_empty() && gold.is_empty() { 1.0 } else { f1(&prediction, &gold) }
    })
}

/// BLEU of single words: the share of the prediction's words that occur in the gold answer, times exp(1 - g/p) for a
/// prediction of p words shorter than a gold answer of g (Papineni et al. 2002). The best over the gold answers.
pub fn bleu1(prediction: &str, golds: &[String]) -> f64 {
    let prediction = gam_words(prediction);
    if prediction.is_empty() {
        return 0.0;
    }
    best(golds, |gold| {
        let gold = gam_words(gold);
        let (p, g) = (prediction.len() as f64, gold.len() as f64);
        shared(&prediction, &gold) as f64 / p * (1.0 - g / p).min(0.0).exp()
    })
}
