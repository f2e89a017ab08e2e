//! Questions over long texts: which method answers how many, with which model, at which cost?
//!
//! A [`QaSuite`] reads published files into [`Cases`]; [`ask`] remembers each case and asks each question by each method
//! of a [`Plan`], and writes everything into a [`QaFolder`] as it comes. [`Report`] turns results into numbers, printed
//! beside the [papers' own](Published); [`compare`] says whether two columns differ; [`replay`] gives the same outputs again
//! from the tape, with no model.
//!
//! # Invariants
//! * No reply is used before it stands on the tape, so no call is ever repeated.
//! * A report follows from manifest and results alone: scored again offline, it is the same.
//! * Methods are names here. Whatever `memory` can do can be measured.

mod case;
mod compare;
mod folder;
mod item;
pub(crate) mod lines;
mod load;
mod page;
mod papers;
mod plan;
mod plot;
mod preset;
mod publish;
mod report;
pub mod ruler;
mod run;
mod suite;
mod sweep;
pub(crate) mod tape;
pub(crate) mod taped;
mod watch;

pub use case::{Case, Cases, Evidence, Question};
pub use compare::{Comparison, compare};
pub use folder::{QaFolder, QaManifest, ScorerDigest, items, manifest, measured};
pub use item::{Column, Item, Line, Measured, Prepared};
pub use papers::{Published, Table};
pub use plan::{Plan, RulerPlan};
pub use plot::draw;
pub use preset::Preset;
pub use publish::publish;
pub use report::{Answered, Report, write_report};
pub use run::{Progress, ask, replay};
pub use suite::QaSuite;
pub use sweep::sweep;
pub use tape::{CallRecord, Scope, Tape};
pub use taped::Machine;
