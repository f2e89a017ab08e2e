//! Getting models, from every source, with every kind of bad luck; nothing here needs a network but `real_wheel`.
//! The Python of these tests is a shell script, so they are for Unix.
#![cfg(unix)]

mod on_disk;
mod toy;
mod wheel;

#[cfg(feature = "hub")]
mod fake_hub;
#[cfg(feature = "hub")]
mod hub;
#[cfg(feature = "hub")]
mod named;

mod real_wheel;
