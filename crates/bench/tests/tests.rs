//! Tests of `memlocal-bench` as a whole: real weights, real data, the program as people run it.
//!
//! Those that need a server run `memlocal` too, which `cargo test` at the root builds.

mod endpoint;
mod forms;
mod load;
mod locomo;
mod qa;
mod shell;

use test_support::home::Home;

/// A place in which `memlocal-bench` runs; `None` (with the reason printed) where there are no models.
fn home(name: &str) -> Option<Home> {
    Home::new(name).map(|home| home.running("memlocal-bench"))
}
