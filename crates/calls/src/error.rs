//! Why a call has no reply.

/// Typed refusals and failures of a call; none of them is ever text for a memory. They name the step of a method that made the
/// call, but not that of a client's request, which a client does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The prompt and the room kept for the answer exceed the context; nothing is ever cut off silently.
    #[error(
        "the prompt{} has {prompt_tokens} tokens and the reply may have {max_output_tokens} more, but the context holds \
         {context_tokens}", of(.step)
    )]
    TooLong { step: &'static str, prompt_tokens: usize, max_output_tokens: usize, context_tokens: usize },
    /// The output format cannot be enforced; the call was refused before any token was computed.
    #[error("the output format{} cannot be enforced: {reason}", of(.step))]
    OutputFormat { step: &'static str, reason: String },
    /// A sampling option that has no meaning for the model, such as a bias of a token that it does not have.
    #[error("the sampling options{} cannot be applied: {reason}", of(.step))]
    Sampling { step: &'static str, reason: String },
    /// The model's chat template does not take these turns, for example two of one speaker in a row.
    #[error("the chat template of {model} refuses the messages{}: {reason}", of(.step))]
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
    #[error("{} failed: {reason}", request(.step))]
    Failed { step: &'static str, reason: String },
    /// The interface of a remote endpoint does not support the call.
    #[error("{} needs {what}, which a remote endpoint does not support", request(.step))]
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
    #[error("{endpoint} refuses {} with status {status}: {reason}", request(.step))]
    Refused { step: &'static str, endpoint: String, status: u16, reason: String },
    /// A reply from elsewhere that has not the form that was asked for.
    #[error("the reply to {} is not in the output format: {reason}", request(.step))]
    OutOfForm { step: &'static str, reason: String },
    /// A reply from elsewhere that ran out of room before its form was complete.
    #[error("the reply to {} reached its limit of {max_output_tokens} tokens before it was complete", request(.step))]
    CutOff { step: &'static str, max_output_tokens: usize },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Closed,
}

/// The steps of requests that no method makes: each has the name of its API.
const REQUESTS: [&str; 6] = ["chat", "completion", "messages", "models", "ollama", "response"];

/// ` of step gam.plan`; nothing for a request that no method makes.
fn of(step: &str) -> String {
    if REQUESTS.contains(&step) { String::new() } else { format!(" of step {step}") }
}

/// `step gam.plan`, or `the request`.
fn request(step: &str) -> String {
    if REQUESTS.contains(&step) { "the request".to_owned() } else { format!("step {step}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_named_if_a_method_made_the_call() {
        let too_long =
            |step| CallError::TooLong { step, prompt_tokens: 31, max_output_tokens: 1, context_tokens: 30 }.to_string();
        let exceeds = "has 31 tokens and the reply may have 1 more, but the context holds 30";
        assert_eq!(too_long("gam.plan"), format!("the prompt of step gam.plan {exceeds}"));
        assert_eq!(too_long("answer"), format!("the prompt of step answer {exceeds}"));
        let refused = |step| CallError::OutputFormat { step, reason: "no".into() }.to_string();
        assert_eq!(refused("gam.plan"), "the output format of step gam.plan cannot be enforced: no");
        let failed = |step| CallError::Failed { step, reason: "no".into() }.to_string();
        assert_eq!(failed("gam.plan"), "step gam.plan failed: no");
        for step in REQUESTS {
            assert_eq!(too_long(step), format!("the prompt {exceeds}"));
            assert_eq!(refused(step), "the output format cannot be enforced: no");
            assert_eq!(failed(step), "the request failed: no");
        }
    }
}
