//! Tests of the whole: real weights, real data, the program as people run it.
//!
//! The models are tiny, so nothing here says how good an answer is.

mod ask;
mod bench;
#[path = "../crates/server/tests/browser.rs"]
mod browser;
mod clients;
mod corpus;
#[path = "../crates/store/tests/server.rs"]
mod database;
mod elsewhere;
mod errors;
mod forms;
mod home;
mod ingest;
mod load;
mod locomo;
mod memcot;
mod mindgraph;
mod models;
mod offline;
mod page;
mod postgres;
mod prefix;
mod resume;
mod serve;
mod settings;
mod story;
#[path = "../models/tests/support/mod.rs"]
mod support;
mod zoom_out;
