//! Tests of `memlocal` as a whole: real weights, real data, the program as users run it.
//!
//! The models are tiny, so these tests do not measure the quality of answers. Tests of `memlocal-bench` are in
//! `crates/bench`. Tests start in the order of their names: the longest ones are in the first module.

mod adapter_training;
mod ask;
mod bad_days;
mod bench;
mod bundle;
mod clients;
mod corpus;
mod crash;
mod doctor;
mod errors;
mod hints;
mod ingest;
mod memcot;
mod mindgraph;
mod models;
mod offline;
mod page;
mod postgres;
mod prefix;
mod remote_engine;
mod resume;
mod secrets;
mod serve;
mod settings;
mod timing;
