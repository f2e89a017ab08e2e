//! Scaffolding shared by the tests of several crates.
//!
//! `programs`: runs `memlocal` and `memlocal-bench` in a folder of a test's own (`home`, `serving`, `story`).
//! `weights`: real model weights. `replies`: scripted language models (`double`, `fill`, `oracle`, `thinker`) and readers of prompts.
//! `fuzz`: rounds of random input. `postgres`: a PostgreSQL server of a test's own. `browser`: a headless Chromium. `hub`: the Hugging Face Hub on this machine.
//! `synchronise_nothing!`: a test program that does not wait for the disk.
//!
//! If something is unavailable on this machine, the functions print why and return `None`, and the test returns.

#[cfg(feature = "browser")]
pub mod browser;
#[cfg(feature = "replies")]
pub mod double;
#[cfg(feature = "replies")]
pub mod fill;
pub mod fuzz;
#[cfg(feature = "programs")]
pub mod home;
#[cfg(feature = "hub")]
pub mod hub;
#[cfg(feature = "replies")]
pub mod oracle;
#[cfg(all(feature = "postgres", unix))]
pub mod postgres;
#[cfg(feature = "replies")]
pub mod prompt;
#[cfg(feature = "programs")]
pub mod serving;
#[cfg(feature = "programs")]
pub mod story;
#[cfg(feature = "replies")]
pub mod thinker;
#[cfg(feature = "weights")]
mod weights;

#[cfg(feature = "weights")]
pub use weights::weights;

/// Makes a test program synchronise no file: waiting for the disk takes most of the time of tests that store, and only a power
/// cut would show it (`crates/store/tests/power.rs`).
#[macro_export]
macro_rules! synchronise_nothing {
    () => {
        /// Functions of libc, as the standard library and SQLite call them.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        #[allow(unsafe_code, reason = "a name that the linker is to find")]
        mod synchronise_nothing {
            #[unsafe(no_mangle)]
            extern "C" fn fsync(_file: std::ffi::c_int) -> std::ffi::c_int {
                0
            }

            #[unsafe(no_mangle)]
            extern "C" fn fdatasync(_file: std::ffi::c_int) -> std::ffi::c_int {
                0
            }
        }
    };
}
