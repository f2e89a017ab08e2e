//! Tests of the `memlocal-bench` program with real weights and real data.
//!
//! Tests with a server also run `memlocal`, which `cargo test` at the root builds.

mod endpoint;
mod forms;
mod killed;
mod load;
mod locomo;
mod qa;
mod shell;

use test_support::home::Home;

/// A test home in which `memlocal-bench` runs; `None` (with the reason printed) if there are no models.
fn home(name: &str) -> Option<Home> {
    Home::new(name).map(|home| home.running("memlocal-bench"))
}
