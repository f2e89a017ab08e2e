//! Models elsewhere: a [`Remote`] answers calls by asking an OpenAI-compatible endpoint on the user's own network, such as
//! vLLM, SGLang, llama-server or another memlocal.
//!
//! A call becomes one streamed chat completion (a bare prompt one completion) with its form as `response_format`, so that a
//! caller who goes away is noticed and the request given up. Nothing is sent anywhere but to that endpoint: no proxy, no
//! redirects.
//!
//! # Invariants
//! * A reply has the form that was asked for, or is an error: endpoints that take a schema and do not keep to it are found out.
//! * What the endpoint cannot be asked for is refused, not left out. Two things are left to it: `repeat_tokens`, which only
//!   keeps answers from going in circles, and [`calls::schema::QUOTE_OF`], which for any caller but our engine is a string.
//! * A broken answer is an error, never a shorter answer.
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
mod request;
mod tokens;

pub use address::Address;
pub use error::RemoteError;
pub use remote::{Remote, Setup};
