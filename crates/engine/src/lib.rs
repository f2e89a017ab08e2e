//! Owns the device: one thread with one loop and one message queue.
//!
//! An [`Engine`] is a handle: it renders and tokenises a call on the caller's thread, submits it, and awaits the reply.
//! The engine's thread (`worker`) receives messages, asks the scheduler what to run, runs it, samples, and replies.
//! Only that thread accesses weights, pages and sequences, so they need no locks.
//!
//! Not here: the content of prompts (`memory`), the assignment of pages (`scheduler`), the computation of a layer
//! (`models`).

mod adapters;
mod adjustments;
mod admission;
mod capacity;
mod catch_panic;
mod completion;
mod contents;
mod details;
mod embedding;
mod generation;
mod grammar;
mod handle;
mod language;
mod logits;
mod logprob;
mod message;
mod namespace;
mod prefixes;
mod prompt_lookup;
mod quote;
mod repetition;
mod sample;
mod schema;
mod score;
mod scoring;
mod segments;
mod snapshot;
mod state;
mod step_budget;
mod stop;
mod text;
mod thought;
mod tools;
mod whitespace;
mod worker;

pub use adapters::{Adapters, NamedAdapter};
pub use capacity::{CapacityError, MIN_KV_TOKENS, RESERVED_BYTES};
pub use handle::{Config, Engine, Models, StartError};
pub use prefixes::Pin;
