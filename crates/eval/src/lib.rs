//! Data sets, scorers, reports: numbers with provenance.
//!
//! A [`Suite`] reads published files into a [`Dataset`]; [`retrieval`] searches it with the tools of the methods and reports the
//! ranks of the wanted passages. [`qa`] asks whole data sets by method and model, and scores, compares and replays runs.
//! [`score`] has the scorers of ranks and answers, by name. [`speed`] gives an engine or a server and its peer the same
//! work, and [`forms`] validates the format of every reply. A [`RunFolder`] keeps the numbers of a run together with their
//! provenance: command line, commit, machine, digests and raw results.
//!
//! # Invariants
//! * A malformed file is an error with file, line and field. Nothing is skipped silently: known faults of published files
//!   are in [`Dataset::notes`].
//! * Every number of a summary follows from the raw results beside it.
//!
//! Not here: engines and models (callers pass a caller and an embedder), the data themselves.

pub mod data;
pub mod forms;
pub mod qa;
pub mod retrieval;
pub mod score;
pub mod speed;

mod chart;
mod endings;
mod error;
mod host;
mod names;
mod run_folder;
mod suite;

pub use data::{Collection, Dataset, Passage, Query, Wanted};
pub use endings::{Endings, StepEndings};
pub use error::{Error, Result};
pub use host::{Host, memory_of, name_kernels, peak_memory_bytes, peak_memory_of};
pub use memory::Random;
pub use run_folder::{Beginning, FileDigest, Manifest, ModelDigest, RunFolder};
pub use suite::Suite;
