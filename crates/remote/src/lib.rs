//! Models elsewhere: a [`Remote`] answers calls by asking an OpenAI-compatible endpoint on the user's own network, such as
//! vLLM, SGLang, llama-server or another memlocal.
//!
//! A call becomes one streamed chat completion (a bare prompt one completion) with its form as `response_format`, so that a
//! caller who goes away is noticed and the request given up. Nothing is sent anywhere but to that endpoint: no proxy, no
//! redirects.
//!
//! # Invariants
//! * A reply has the form that was asked for, or is an error: endpoints that take a schema and do not keep to it are found out.
//! * What the endpoint cannot be asked for is refused, not left out, but for three things. [`calls::schema::QUOTE_OF`] is a
//!   string for any caller but our engine. A reply that repeats itself (`stop_loops`) is not stopped: it is marked when it is
//!   complete, by the rule of the engine. A thought (`thinking_tokens`) gets room beside the answer, but whether a model thinks
//!   is up to the endpoint: what it sends as `reasoning_content` is the thought, and where it sends none the reply has none,
//!   which the trace of a method shows.
//! * A broken answer is an error, never a shorter answer; one that reached its limit before its form was complete is
//!   [`calls::CallError::CutOff`].
//!
//! Token counts before a call are estimates on the high side, because the tokenizer is on the other machine; what a reply
//! reports as its cost is the endpoint's own count.
//!
//! Not here: embedding (vectors are made on this machine), prompts (`memory`), flags and the rule of `--offline` (`cli`).

mod address;
mod answer;
mod endpoint;
mod error;
mod form;
mod remote;
mod repetition;
mod request;
mod tokens;

pub use address::Address;
pub use error::RemoteError;
pub use remote::{Remote, Setup};
