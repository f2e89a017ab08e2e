//! f1:squad and em:squad (Rajpurkar et al. 2016): GAM on HotpotQA and NarrativeQA, ComoRAG on its free answers. f1:hotpotqa,
//! HotpotQA's own F1 (Yang et al. 2018), which 2WikiMultiHopQA uses too.

use super::words::{best, f1, squad_words};

/// The F1 of words, the best over the gold answers.
pub fn f1_squad(prediction: &str, golds: &[String]) -> f64 {
    let prediction = squad_words(prediction);
    best(golds, |gold| f1(&prediction, &squad_words(gold)))
}

/// The F1 of words as `hotpot_evaluate_v1.py` computes it: where prediction or gold answer is `yes`, `no` or `noanswer`
/// alone, it is 0 unless they are equal. The best over the gold answers.
pub fn f1_hotpotqa(prediction: &str, golds: &[String]) -> f64 {
    let is_closed = |words: &[String]| matches!(words, [word] if ["yes", "no", "noanswer"].contains(&word.as_str()));
    let prediction = squad_words(prediction);
    best(golds, |gold| {
        let gold = squad_words(gold);
        let differs = (is_closed(&prediction) || is_closed(&gold)) && prediction != gold;
        if differs { 0.0 } else { f1(&prediction, &gold) }
    })
}

/// 1 if the words are those of a gold answer.
pub fn em_squad(prediction: &str, golds: &[String]) -> f64 {
    let prediction = squad_words(prediction);
    best(golds, |gold| f64::from(prediction == squad_words(gold)))
}
