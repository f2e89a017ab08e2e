//! Owns the device: one thread with one loop and one message queue.
//!
//! An [`Engine`] is a handle: it renders and tokenises a call on the caller's thread, submits it, and awaits the reply.
//! The engine's thread (`worker`) receives messages, asks the scheduler what to run, runs it, samples, and replies.
//! Only that thread accesses weights, pages and sequences, so they need no locks. Replies in output formats are continued by threads of
//! their own (`format_threads`), and snapshots are written by their callers' (`prefixes`).
//!
//! Not here: the content of prompts (`memory`), the assignment of pages (`scheduler`), the computation of a layer
//! (`models`).

mod adapters;
mod adjustments;
mod admission;
mod capacity;
mod catch_panic;
mod completion;
mod config;
mod contents;
mod details;
mod embedding;
mod engine;
mod format_threads;
mod frontend;
mod generation;
mod grammar;
mod grammars;
mod interface;
mod logits;
mod logprob;
mod message;
mod model_runner;
mod namespace;
mod prefixes;
mod prompt_lookup;
mod quote;
mod render;
mod rendered;
mod repetition;
mod sample;
mod schema;
mod score;
mod scoring;
mod segments;
mod shared_prompt;
mod snapshot;
mod start;
mod state;
mod step_budget;
mod step_limits;
mod stop;
mod submission;
mod text;
mod thought;
mod token_env;
mod tool_calls;
mod tool_syntax;
mod unloading;
mod vocabulary;
mod whitespace;
mod worker;
mod written;

pub use adapters::{Adapters, NamedAdapter};
pub use capacity::{CapacityError, GPU_OVERHEAD, MIN_KV_TOKENS, gpu_step_bytes};
pub use config::{Config, Models, StartError};
pub use engine::Engine;
