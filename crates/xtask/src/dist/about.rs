//! The product, as its packages describe it.

pub(crate) const SUMMARY: &str = "A long memory over private documents and conversations, on your own machine";
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Of the program and of the adapter in it (`models/adapters`).
pub(crate) const LICENCE: &str = concat!("(", env!("CARGO_PKG_LICENSE"), ") AND CC-BY-SA-4.0");
