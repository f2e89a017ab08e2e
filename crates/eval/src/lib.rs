//! Data sets, scorers, reports: numbers with provenance.
//!
//! A [`Suite`] reads published files in their own form into a [`Dataset`]; [`retrieval`] searches it with the tools that
//! the methods have and says where what was wanted stands. [`qa`] asks whole data sets by method and model, and can score,
//! compare and replay what came of it. [`score`] turns ranks and answers into numbers, by name. [`speed`] gives an engine
//! or a server and its peer the same work, and [`forms`] looks whether every reply has the form that was asked for. A [`RunFolder`]
//! keeps the numbers of one run together with what they came from: command, commit, machine, digests and raw results.
//!
//! # Invariants
//! * A file that is not what it should be is an error with file, line and field. Nothing of it is passed over silently:
//!   what a published file has wrong is in [`Dataset::notes`].
//! * Every number of a summary follows from the raw results beside it.
//!
//! Not here: engines and models (whoever calls brings a caller and an embedder), the data themselves.

pub mod data;
pub mod forms;
pub mod qa;
pub mod retrieval;
pub mod score;
pub mod speed;

mod chart;
mod endings;
mod error;
mod machine;
mod run_folder;
mod suite;

pub use data::{Collection, Dataset, Passage, Query, Wanted};
pub use endings::{Endings, StepEndings};
pub use error::{Error, Result};
pub use machine::{Machine, memory_of, peak_memory_bytes, peak_memory_of};
pub use memory::Random;
pub use run_folder::{Beginning, FileDigest, Manifest, ModelDigest, RunFolder};
pub use suite::Suite;
