//! The engine through its public API, on tiny models and on real weights. One program, since each program contains all
//! networks; `long_prompts` measures the memory of its own.

mod adapters;
mod continued;
mod embedding;
mod failures;
mod format_threads;
mod forms;
mod gate;
mod infill;
mod language;
mod padding;
mod pieces;
mod portable;
mod prefixes;
mod random_calls;
mod scores;
mod shared_prompt;
mod smollm2;
mod snapshots;
mod stops;
mod thinking;
mod tiny;
mod tools;
mod unloading;
