//! Owns the device: one thread, one loop, one mailbox.
//!
//! An [`Engine`] is a handle: it renders and tokenises a call on the caller's thread, posts it, and waits. The thread
//! behind it ([`worker`]) drains its mailbox, asks the scheduler what to run, runs it, samples, and answers. Nothing but
//! that thread touches weights, pages or sequences, so there are no locks around them.
//!
//! Not here: what a prompt says (`memory`), which pages are whose (`scheduler`), how a layer is computed (`models`).

mod blanks;
mod capacity;
mod close;
mod contents;
mod embedding;
mod generation;
mod grammar;
mod guarded;
mod guess;
mod handle;
mod language;
mod logits;
mod logprob;
mod mailbox;
mod namespace;
mod pace;
mod places;
mod prefixes;
mod quote;
mod repetition;
mod sample;
mod schema;
mod score;
mod scoring;
mod segments;
mod snapshot;
mod stop;
mod text;
mod thought;
mod watch;
mod worker;

pub use capacity::{CapacityError, MIN_KV_TOKENS, RESERVED_BYTES};
pub use handle::{Config, Engine, Models, StartError};
pub use prefixes::Pin;
pub use sample::Sampler;
