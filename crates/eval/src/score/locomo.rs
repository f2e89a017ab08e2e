//! f1:locomo, the official scorer of LoCoMo (Maharana et al. 2024, task_eval/evaluation.py): the F1 of stemmed words.

use super::porter::stem;
use super::words::{f1, locomo_words};

/// The score of a prediction by the question's category (1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop,
/// 5 adversarial).
///
/// Of an open-domain gold answer only the part before the first `;` counts. Multi-hop answers are lists: each part of
/// the gold answer is matched with the best part of the prediction. An adversarial question should be refused.
pub fn f1_locomo(prediction: &str, gold: &str, category: usize) -> f64 {
    match category {
        1 => {
            let golds: Vec<&str> = gold.split(',').collect();
            let best = |gold: &&str| prediction.split(',').map(|part| stemmed_f1(part, gold)).fold(0.0, f64::max);
            golds.iter().map(best).sum::<f64>() / golds.len() as f64
        }
        3 => stemmed_f1(prediction, gold.split(';').next().unwrap_or_default()),
        5 => {
            let answer = prediction.to_lowercase();
            f64::from(answer.contains("no information available") || answer.contains("not mentioned"))
        }
        _ => stemmed_f1(prediction, gold),
    }
}

fn stemmed_f1(prediction: &str, gold: &str) -> f64 {
    let stems = |text| locomo_words(text).iter().map(|word| stem(word)).collect::<Vec<_>>();
    f1(&stems(prediction), &stems(gold))
}
