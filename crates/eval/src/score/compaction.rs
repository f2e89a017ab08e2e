//! Compaction ratio (MindGraph, section 4.2): how much of a text the answering model is given.

/// f1 / L: the tokens of the prompt of the answering model's first call over the tokens of the text. Small is good.
/// `None` for a text without tokens.
pub fn compaction(first_answer_prompt_tokens: usize, text_tokens: usize) -> Option<f64> {
    (text_tokens > 0).then(|| first_answer_prompt_tokens as f64 / text_tokens as f64)
}
