//! ruler:nvidia and ruler:gam, two ways to look for gold strings in an answer (Hsieh et al. 2024; GAM's own copy).

/// RULER's `string_match_all`: the share of the gold strings that occur in the answer, ignoring case.
pub fn ruler_all(prediction: &str, golds: &[String]) -> f64 {
    let prediction = prediction.to_lowercase();
    let found = golds.iter().filter(|gold| prediction.contains(&gold.to_lowercase())).count();
    found as f64 / golds.len().max(1) as f64
}

/// RULER's `string_match_part`, which scores its question answering: 1 if any gold string occurs in the answer.
pub fn ruler_part(prediction: &str, golds: &[String]) -> f64 {
    f64::from(ruler_all(prediction, golds) > 0.0)
}

/// GAM's: 1 if all gold strings occur in the answer; verbatim, or without punctuation, or at least all words of more
/// than two letters.
pub fn ruler_gam(prediction: &str, golds: &[String]) -> f64 {
    let prediction = prediction.to_lowercase();
    let bare = |text: &str| {
        let kept: String = text.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace() || *c == '_').collect();
        kept.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let bare_prediction = bare(&prediction);
    let has = |gold: &String| {
        let gold = gold.to_lowercase();
        let bare_gold = bare(&gold);
        let long: Vec<&str> = bare_gold.split(' ').filter(|word| word.chars().count() > 2).collect();
        prediction.contains(&gold)
            || bare_prediction.contains(&bare_gold)
            || !long.is_empty() && long.iter().all(|word| bare_prediction.contains(word))
    };
    f64::from(golds.iter().all(has))
}
