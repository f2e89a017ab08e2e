//! Compaction ratio (MindGraph, section 4.2): the share of a text that the answering model reads.

/// f1 / L: the prompt tokens of the answering model's first call divided by the tokens of the text. Lower is better.
/// `None` for a text without tokens.
pub fn compaction(first_answer_prompt_tokens: usize, text_tokens: usize) -> Option<f64> {
    (text_tokens > 0).then(|| first_answer_prompt_tokens as f64 / text_tokens as f64)
}
