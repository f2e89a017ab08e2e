//! HTTP, MCP and the web page in front of `memory` and `calls`.
//!
//! One [`Server`] serves OpenAI's API, Ollama's, memlocal's own (corpora, ingest, search, ask, traces), MCP and a web
//! page. It receives a `Caller` and an `Embedder` and does not depend on `engine`.
//!
//! # Invariants
//! * Over-long input is refused with both numbers, never truncated.
//! * A client's disconnect drops the future of its request, which cancels its calls.
//! * Logs and metrics contain no text of prompts, documents or answers, unless logging of prompts is enabled.
//! * A tenant sees only its own corpora, jobs and traces; if the port is reachable from other machines, a key is
//!   required.
//! * Names of uploads are names, never paths.
//!
//! Not here: prompts of methods (`memory`), tokens and devices (`engine`), flags (`cli`).

mod admission;
mod admitted;
mod anthropic;
mod api;
mod app;
mod bench;
mod blocking;
mod body;
mod config;
mod connections;
mod corpora;
mod delivery;
mod docs;
mod engine;
mod error;
mod forget;
mod fresh;
mod guard;
mod health;
mod history;
mod json;
mod keys;
mod limits;
mod loading;
mod lost;
mod mcp;
mod metered;
mod metrics;
mod offered;
mod ollama;
mod openai;
mod operator;
mod page;
mod pulling;
mod query;
mod rate;
mod recall;
mod router;
mod serve;
mod served;
mod shelf;
mod status;
mod stream;
mod tenant;
mod time;
mod uploads;
mod warnings;

pub use config::{Config, LoadModels};
pub use corpora::shown::{corpus_json, document_json, documents_json, parts_json};
pub use error::{Result, ServerError};
pub use forget::Forget;
pub use keys::{Keys, KeysError, KeysFile};
pub use loading::KeepAlive;
pub use pulling::{Given, ModelMemory, Preloaded, Preset, PullProgress, Refused, Shelf, ShelfModel};
pub use serve::Server;
