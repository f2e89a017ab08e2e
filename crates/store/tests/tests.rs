//! The store through its public API: storage, search, and recovery.

mod analyzer;
mod backup;
mod bm25;
mod corpora;
mod crash;
mod damage;
mod derived;
mod documents;
mod fuse;
mod locomo;
mod notes;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod power;
mod repair;
mod scratch;
#[cfg(unix)]
mod shared;
mod spans;
mod upgrade;
mod vectors;
