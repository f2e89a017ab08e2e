//! The server over real sockets, in front of scripted models.

mod adapters;
mod anthropic;
mod batches;
mod chat;
mod completions;
mod conversations;
mod corpora;
mod corpus_models;
mod documented;
mod documents;
mod embeddings;
mod engine;
mod files;
mod forgetting;
mod fuzz;
mod graph;
mod holders;
mod host;
mod keys;
mod limits;
mod loading;
mod malformed;
mod mcp;
mod notes;
mod ollama;
mod page;
mod page_looks;
#[cfg(unix)]
mod preparing;
mod private;
mod questions;
mod responses;
#[cfg(unix)]
mod shared;
mod shelf;
mod stored_responses;
mod streams;
mod tenants;
mod threads;
mod tools;

test_support::synchronise_nothing!();
