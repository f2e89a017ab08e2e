//! The fitted constants, with the commands that made them.
//!
//! Data: public training sets that share no question or article with the evaluation sets (SQuAD train articles, FairytaleQA,
//! 2WikiMultihopQA, TimeQA), as JSON lines with `question`, `answers` and `context`.

use super::features::FEATURES;

/// The surface score of a candidate's features.
pub(super) fn surface(features: &[f32]) -> f32 {
    features.iter().zip(&SURFACE).map(|(feature, weight)| feature * weight).sum()
}

/// W and A of the mixed score: `... --example grounding -- fit-model SCORED.jsonl` over 107 questions of SQuAD train articles
/// that SmolLM2-135M-Instruct Q4_1 scored. F1 45.2 by surface alone, 39.3 by likelihood alone, 52.3 by both.
pub(super) const MODEL: f64 = 0.27;
pub(super) const LENGTH_POWER: f64 = 0.25;

/// What a candidate gains that has all new words of a model's reply and no other. Not fitted: about the log-odds at which
/// a small model's reply is right (0.35) less those of one candidate among [`super::MOST`]; 3 was too little for one of
/// twelve questions about `samples/`.
pub(super) const AGREEMENT: f32 = 4.0;

/// Bias and weights of [`super::abstain`]: `... --example grounding -- fit-abstention squad_articles.jsonl
/// xquad-report:xquad.en.json`. AUROC 0.938, Brier score 0.109 on the 2,472 cases of the report half of XQuAD, English.
pub(super) const ANSWERABLE: [f64; 9] = [-3.4673, 2.2900, 2.0022, 1.2491, 0.0893, -0.0957, 1.4861, 0.0131, 0.3616];

/// Bias and weights of [`super::reading`], fitted to all readings of 1,295 questions that the suite `answers` does not ask: 400 of XQuAD,
/// English, each of its article and of its paragraph; 132 of FairytaleQA, each of its story; 100 of FriendsQA, as conversations; 63 and 100
/// of the training sets of HotpotQA and MuSiQue; and 100 of XQuAD without the paragraph of the answer, whose readings are all wrong. The
/// reader was that of four stages of training, shown paragraphs and two sentences.
/// `memlocal-bench qa --suite answers --cases xquad,paragraph,hotpotqa,narrativeqa,locomo,unanswerable` over them in these formats, then
/// `cargo run --release -p memory --example grounding -- fit-reading RESULTS.jsonl`. 1,140 have readings. Each half judged by the weights of
/// the other: the most probable reading is right for 757 questions and any for 837; its AUROC is 0.791, its Brier score 0.174.
pub(super) const RIGHT: [f64; 11] =
    [-1.0558, 0.3079, 0.2169, 2.6184, -0.3451, 0.0816, 0.3140, 0.1137, 0.8401, 0.2385, -1.0460];

/// `cargo run --release -p memory --example grounding -- fit squad_articles.jsonl squad_sample800.jsonl
/// fairytaleqa_train.jsonl 2wiki_train500.jsonl timeqa_human_train.jsonl`.
const SURFACE: [f32; FEATURES] = [
    -0.296, 3.842, -0.202, 1.291, -1.693, -0.228, -0.832, 5.706, 1.672, 0.723, -0.216, -0.222, 0.017, 1.372, 2.442,
    -0.146, -0.006, 0.259, 0.277, 0.498, -0.325, 0.420, 0.513, 1.233, 0.551, -0.925, 0.240, -0.616, -0.821, -1.655,
    -1.879, 0.250, 0.174, 0.158, -0.162, -0.327, -0.212, -1.214, 0.205, -0.994, -0.442, 2.220, -0.891, -0.304, 0.703,
    5.436, 0.282, -4.463, -2.245, -2.517, -1.146, -0.809, 0.812, 2.589, -0.843, -0.603, -2.344, -1.670, -3.208, -2.305,
    -1.520, -1.715, -1.737, -1.469, 1.547, 1.864, -0.635, -0.145, -2.393, -1.010, -2.543, 3.000, -0.092, -0.696, 0.166,
    -1.026, -1.154, -1.388, -2.195, -1.318, -3.289, -2.140, -3.105, -2.346, 2.895, 0.032, 0.642, 0.083, -3.073, -3.943,
    -2.689, -1.893, -3.133, -2.030, -2.559, -1.364, 0.861, 2.280, 2.394, 1.265, -4.013, -3.581, -1.750, -1.743, -3.094,
    -1.878, -2.874, -2.293, 0.671, -1.938, 2.981, 0.209, -2.812, -2.769, -3.516, -0.320, -2.278, -2.632, -3.255,
    -3.594, -0.601, -2.092, -1.290, -3.211, 1.693, 2.093, -1.101, -1.343, -3.324, -2.302, -2.562, -3.262, -0.471,
    0.396, 0.525, -0.565, 0.287, 1.430, -0.682, 2.222, -1.414, -0.454, -0.495, -2.455, -0.776, -2.524, -1.689, -2.595,
    0.763, 2.018, -1.080, 2.137, -1.585, -1.657, -2.411, -2.152, -0.061, -0.660, -0.113, -0.231, -1.269, -0.803,
    -0.454, 1.575, -0.135, -0.144, -0.098, -2.075, -3.451, -0.095, -0.137, -1.191, -1.643, 0.848, 0.274, -2.012,
    -2.743, -0.190, 1.350, -2.150, -1.985, 0.000, -1.099, -2.299, 0.188, 1.331, -1.354, -0.288, -0.187, -0.472, 0.303,
];
