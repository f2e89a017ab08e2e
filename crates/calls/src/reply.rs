//! What comes back from a call, and what it cost.

use std::ops::AddAssign;

use crate::{Role, Stability, ToolCall};

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model ended it, a stop string came, or the output format was complete.
    Stop,
    /// `max_output_tokens` was reached (free text only).
    Length,
    /// The text repeated itself ([`crate::loops`]; free text only).
    Repetition,
    /// `max_output_tokens` came near, or the form became too complex to enforce, and it was closed by the shortest way to a
    /// valid end.
    ClosedEarly,
    /// A string of the form repeated itself, and the form was closed by the shortest way to a valid end.
    LoopClosed,
}

impl Finish {
    /// True if the model did not end the reply itself: the reply is incomplete.
    pub fn is_cut(self) -> bool {
        self != Finish::Stop
    }

    /// True if the reply ended because it repeated itself: more room would not help.
    pub fn is_loop(self) -> bool {
        matches!(self, Finish::Repetition | Finish::LoopClosed)
    }
}

/// Tokens and time that one or more calls took.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    pub calls: usize,
    /// Tokens of all prompts, cached ones included.
    pub prompt_tokens: usize,
    /// Prompt tokens whose keys and values were there already.
    pub cached_tokens: usize,
    pub output_tokens: usize,
    /// From submission to the last token; sums over calls, so parallel calls count twice.
    pub seconds: f64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.calls += other.calls;
        self.prompt_tokens += other.prompt_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        self.seconds += other.seconds;
    }
}

/// The first segment of a prompt that was not in the cache whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Divergence {
    /// Its place among [`crate::Prompt::segments`].
    pub segment: usize,
    #[serde(rename = "speaker")]
    pub role: Role,
    pub stability: Stability,
}

/// How likely a token was where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// Its number in the model's vocabulary, where that is known.
    pub id: Option<u32>,
    /// Its text, which may be a part of a character.
    pub bytes: Vec<u8>,
    /// Natural logarithm of the probability that the model gave it, before temperature and output format.
    pub logprob: f32,
    /// It was drawn from several tokens that were allowed; false if the output format allowed no other, or if it was
    /// written to close the reply early.
    pub drawn: bool,
    /// The most likely tokens in its place, in descending order.
    pub top: Vec<(Vec<u8>, f32)>,
}

/// The answer to one [`crate::Call`].
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The text, without special tokens. For `OutputFormat::Json` it parses and validates.
    pub text: String,
    /// What the model thought before its answer, without markers, if it was asked to think
    /// ([`crate::Limits::thinking_tokens`]) or does so by itself. Never an answer, memory or source of a quote.
    pub thought: Option<String>,
    /// The calls of tools after the text; none unless [`crate::Call::tools`] allows them.
    pub tool_calls: Vec<ToolCall>,
    pub finish: Finish,
    /// The stop string that ended the reply, if one did.
    pub stopped_by: Option<String>,
    /// The number of the token that the model drew to end the reply, where that is known; `None` if a limit, a stop string or
    /// the end of the output format ended it.
    pub end_token: Option<u32>,
    pub usage: Usage,
    /// Where the prompt left the nearest cached one; `None` if all of its segments were there.
    pub diverged: Option<Divergence>,
    /// One for each token of the answer; empty unless [`crate::Call::logprobs`] asks for it.
    pub logprobs: Vec<TokenLogprob>,
    /// The prompt exactly as the model read it.
    pub rendered: String,
    /// Name of the model that answered.
    pub model: String,
}
