//! Remote models: a [`Remote`] answers calls through an OpenAI-compatible endpoint on the user's own network, such as
//! vLLM, SGLang, llama-server or another memlocal.
//!
//! A call is sent as one streamed chat completion (a bare prompt as one completion) with its output format as
//! `response_format`; streaming lets the request be aborted when its caller disconnects. Nothing is sent to any other
//! address: no proxy, no redirects.
//!
//! # Invariants
//! * A reply has the requested output format or is an error: endpoints that accept a schema and ignore it are detected.
//! * Options that the endpoint does not support are rejected, not dropped, with three exceptions.
//!   [`calls::schema::QUOTE_OF`] is a plain string for any caller but our engine. A reply that repeats itself
//!   (`stop_loops`) is not stopped: it is marked when it is complete, by the rule of the engine. Reasoning
//!   (`thinking_tokens`) gets room beside the answer, but the endpoint decides whether a model reasons: the text sent
//!   as `reasoning_content`, or within `<think>` at the beginning of the answer, is the thought, and without it the reply
//!   has none, which the trace of a method shows.
//! * An incomplete answer is an error, never a shorter answer; one that reached its limit before its output format was
//!   complete is [`calls::CallError::CutOff`].
//!
//! Token counts before a call are estimated upwards, because the tokenizer is on the other machine; the cost of a reply
//! is the endpoint's own count.
//!
//! Not here: embedding (vectors are made on this machine), prompts (`memory`), flags and the rule of `--offline`
//! (`cli`).

mod address;
mod answer;
mod client;
mod endpoint;
mod error;
mod form;
mod inline_thought;
mod remote;
mod repetition;
mod request;
mod tokens;

pub use address::Address;
pub use error::RemoteError;
pub use remote::{Remote, Setup};
