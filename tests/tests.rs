//! Tests of the whole: real weights, real data, the program as people run it.
//!
//! The models are tiny, so nothing here says how good an answer is.

mod ask;
mod bench;
mod browser;
mod corpus;
mod errors;
mod home;
mod ingest;
mod locomo;
mod memcot;
mod mindgraph;
mod models;
mod offline;
mod page;
mod prefix;
mod resume;
mod serve;
mod settings;
mod story;
#[path = "../models/tests/support/mod.rs"]
mod support;
mod zoom_out;
