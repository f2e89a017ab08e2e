//! The store through its public surface: what it keeps, what it finds, and what it survives.

mod analyzer;
mod bm25;
mod corpora;
mod crash;
mod damage;
mod derived;
mod documents;
mod fuse;
mod locomo;
mod notes;
mod scratch;
#[cfg(unix)]
mod shared;
mod spans;
mod vectors;
