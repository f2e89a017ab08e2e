//! The fitted constants, with the commands that made them.
//!
//! Data: public training sets that share no question or article with the evaluation sets (SQuAD train articles, FairytaleQA,
//! 2WikiMultihopQA, FriendsQA, TimeQA; 16,000 questions), as JSON lines with `question`, `answers` and `context`.

use super::features::FEATURES;

/// The surface score of a candidate's features.
pub(super) fn surface(features: &[f32]) -> f32 {
    features.iter().zip(&SURFACE).map(|(feature, weight)| feature * weight).sum()
}

/// W and A of the mixed score: `... --example grounding -- fit-model SCORED.jsonl` over 107 questions of SQuAD train articles
/// that SmolLM2-135M-Instruct Q4_1 scored. F1 45.2 by surface alone, 39.3 by likelihood alone, 52.3 by both.
pub(super) const MODEL: f64 = 0.27;
pub(super) const LENGTH_POWER: f64 = 0.25;

/// Bias and weights of [`super::abstain`]. Only the three features of the surface scores are fitted so far, on 3,000 cases of
/// SQuAD train articles by a script outside the repository; the program for all eight is `... --example grounding --
/// fit-abstention squad_articles.jsonl SET`.
pub(super) const ANSWERABLE: [f64; 9] = [-4.073, 0.0, 0.0, 0.0, 0.761, -0.090, -0.707, 0.0, 0.0];

/// `cargo run --release -p memory --example grounding -- fit squad_articles.jsonl squad_sample800.jsonl
/// fairytaleqa_train.jsonl 2wiki_train500.jsonl friendsqa_dev.jsonl timeqa_human_train.jsonl`.
#[expect(clippy::approx_constant, reason = "a fitted weight")]
const SURFACE: [f32; FEATURES] = [
    -0.550, 3.982, -0.208, 1.316, -1.565, -0.200, -0.905, 5.682, 1.752, -0.048, -0.006, -0.243, 0.036, 1.400, 2.496,
    0.014, -0.049, 0.318, 0.187, 0.565, -0.225, 0.702, 0.548, 1.273, 0.588, -0.887, 0.217, -0.605, -0.773, -1.671,
    -1.874, 0.322, 0.244, 0.196, -0.124, -0.335, -0.299, -0.941, 0.223, -1.032, 0.000, 0.000, 0.000, 0.000, 0.000,
    5.307, 0.228, -4.412, -2.089, -2.456, -1.131, -0.771, 0.965, 2.594, -0.824, -0.492, -2.016, -1.553, -3.135, -2.273,
    -1.376, -1.582, -1.453, -1.597, 1.507, 1.781, -0.524, 0.011, -1.957, -0.777, -2.398, 3.210, -0.076, -0.493, 0.112,
    -0.708, -1.633, -1.547, -1.980, -1.086, -2.751, -1.718, -2.282, -2.335, 2.875, -0.068, 0.670, 0.215, -4.045,
    -3.977, -2.864, -1.883, -3.051, -2.150, -2.844, -1.315, 0.955, 2.357, 2.479, 1.370, -3.973, -3.678, -1.600, -1.623,
    -3.035, -1.829, -2.877, -2.263, 0.723, -2.044, 2.981, 0.266, -2.632, -2.706, -3.468, -0.303, -2.254, -2.688,
    -3.342, -3.568, -0.563, -1.842, -1.243, -3.172, 1.702, 1.989, -1.195, -1.265, -2.538, -2.556, -2.851, -3.041,
    -0.366, 0.368, 0.556, -0.562, 0.354, 1.440, -0.694, 2.264, -1.279, -0.450, -0.629, -2.449, -0.798, -2.681, -1.793,
    -2.187, 0.830, 2.046, -1.158, 2.092, -1.540, -1.705, -2.692, -2.026, -0.072, -0.702, -0.269, -0.402, -1.861,
    -0.629, -0.101, 1.663, -0.288, -0.153, -0.193, -1.949, -3.282, -0.080, -0.148, -0.906, -1.888, 0.094, 0.311,
    -1.898, -2.570, -0.018, 1.327, -2.131, -1.906, 0.000, -1.169, -2.265, 0.346, 1.238, -1.409, -0.251, -0.237, -0.585,
    0.152,
];
