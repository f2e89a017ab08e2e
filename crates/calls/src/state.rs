//! The state of models and caches, for operators.

/// What a model was loaded from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelDetails {
    /// Bytes of its files.
    pub bytes: u64,
    /// When the latest of them was changed, in seconds since 1970.
    pub modified_seconds: u64,
    /// `gguf` or `safetensors`.
    pub format: String,
    /// The architecture, as checkpoints call it.
    pub family: String,
    /// Number of weights.
    pub parameters: u64,
    /// The precision of most weights, as GGUF files name it: `Q4_K_M`, `BF16`.
    pub quantisation: String,
    /// The source of the chat template; empty for an embedder.
    pub template: String,
    /// True if its vocabulary has the marker that ends a thought.
    pub thinks: bool,
    /// True if its vocabulary has the tokens around a place to fill in.
    pub infills: bool,
    pub on_gpu: bool,
}

/// One language model at a moment. A page holds the keys and values of some tokens.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct ModelState {
    /// Name of the model.
    pub model: String,
    pub total_pages: usize,
    /// Bytes of one page.
    pub page_bytes: usize,
    /// Pages of the calls that run.
    pub used_pages: usize,
    /// Unreferenced pages that still cache prefixes.
    pub cached_pages: usize,
    /// Calls that are being answered.
    pub running: usize,
    /// Calls that wait for their turn.
    pub waiting: usize,
    /// Steps so far.
    pub steps: u64,
    /// Tokens of prompts computed so far, those not counted that were cached.
    pub read_tokens: u64,
    /// Tokens of the prompts of finished calls that were cached.
    pub cached_tokens: u64,
    /// Tokens of answers written so far.
    pub written_tokens: u64,
    /// Tokens of prompts computed in a second, over the last seconds.
    pub read_tokens_per_second: f64,
    /// Tokens of answers written in a second, over the last seconds.
    pub written_tokens_per_second: f64,
}
