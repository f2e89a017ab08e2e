//! Why a call has no reply.

/// Typed refusals and failures of a call; none of them is ever text for a memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The prompt and the room kept for the answer exceed the context; nothing is ever cut off silently.
    #[error(
        "the prompt of step {step} has {prompt_tokens} tokens and {max_output_tokens} more are kept for the reply, but the context holds {context_tokens}"
    )]
    TooLong { step: &'static str, prompt_tokens: usize, max_output_tokens: usize, context_tokens: usize },
    /// The output format cannot be enforced; the call was refused before any token was computed.
    #[error("the answer form of step {step} cannot be enforced: {reason}")]
    OutputFormat { step: &'static str, reason: String },
    /// A sampling option that has no meaning for the model, such as a bias of a token that it does not have.
    #[error("the sampling options of step {step} cannot be applied: {reason}")]
    Sampling { step: &'static str, reason: String },
    /// The model's chat template does not take these turns, for example two of one speaker in a row.
    #[error("the chat template of {model} refuses the messages of step {step}: {reason}")]
    Template { step: &'static str, model: String, reason: String },
    /// The model has no tokens for a text with a place to fill in.
    #[error("the model {model} cannot fill in the middle of a text: its tokenizer has no {token}")]
    Infill { step: &'static str, model: String, token: &'static str },
    /// One text to embed has more tokens than the embedder reads.
    #[error("a text of {tokens} tokens is longer than the {window_tokens} that the embedder {embedder} reads")]
    TooLongToEmbed { embedder: String, tokens: usize, window_tokens: usize },
    /// The queue is full; try again later.
    #[error("{queued} calls are running or waiting already")]
    Overloaded { queued: usize },
    /// The caller gave the call up.
    #[error("the call was cancelled")]
    Cancelled,
    /// No model is loaded for what was asked.
    #[error("no model is loaded for {what}")]
    NoModel { what: String },
    /// The computation of this one call failed; others continue.
    #[error("step {step} failed: {reason}")]
    Failed { step: &'static str, reason: String },
    /// The interface of a remote endpoint does not support the call.
    #[error("step {step} needs {what}, which a remote endpoint does not support")]
    Unsupported { step: &'static str, what: String },
    /// There is no connection to the endpoint.
    #[error("there is no connection to {endpoint}: {reason}")]
    NoConnection { endpoint: String, reason: String },
    /// The answer of the endpoint is none, or broke off.
    #[error("{endpoint} does not answer as it should: {reason}")]
    Unreachable { endpoint: String, reason: String },
    /// The endpoint has been overloaded for too long.
    #[error("{endpoint} is overloaded and wants to be left alone for {pause_seconds} s")]
    Busy { endpoint: String, pause_seconds: u64 },
    /// The endpoint refuses the call.
    #[error("{endpoint} refuses step {step} with status {status}: {reason}")]
    Refused { step: &'static str, endpoint: String, status: u16, reason: String },
    /// A reply from elsewhere that has not the form that was asked for.
    #[error("the reply to step {step} has not the form that was asked for: {reason}")]
    OutOfForm { step: &'static str, reason: String },
    /// A reply from elsewhere that ran out of room before its form was complete.
    #[error("the reply to step {step} reached its limit of {max_output_tokens} tokens before its form was complete")]
    CutOff { step: &'static str, max_output_tokens: usize },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Closed,
}
