//! HTTP, MCP and the web page in front of memory and calls.
//!
//! One [`Server`] answers OpenAI's API, Ollama's, memlocal's own (corpora, ingest, search, ask, traces), MCP, and a page for
//! people. It is given whoever answers calls and whoever makes vectors, and knows nothing of engines.
//!
//! # Invariants
//! * Over-long input is refused with both numbers, never cut.
//! * A client that goes away is given up: its future is dropped, and with it the calls.
//! * What is logged or counted holds no word of prompts, documents or answers, unless prompts are asked for.
//! * Holders of keys see their own corpora, jobs and traces only; where the port can be reached from elsewhere, a key is
//!   needed.
//! * Names of uploads are names, never paths.
//!
//! Not here: what a prompt says (`memory`), tokens and devices (`engine`), flags (`cli`).

mod api;
mod app;
mod bench;
mod body;
mod config;
mod connections;
mod corpora;
mod docs;
mod engine;
mod error;
mod gate;
mod guard;
mod health;
mod keys;
mod mcp;
mod metered;
mod metrics;
mod ollama;
mod openai;
mod page;
mod rate;
mod serve;
mod stream;
mod tenant;
mod uploads;
mod work;

pub use config::Config;
pub use error::{Result, ServerError};
pub use keys::{Keys, KeysError, KeysFile};
pub use serve::Server;
