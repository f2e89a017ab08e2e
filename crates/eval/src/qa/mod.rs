//! Question answering over long texts, by method and model: scores, outcomes, evidence and cost.
//!
//! A [`QaSuite`] reads published files into [`Cases`]; [`ask`] ingests each case, asks each question by each method of a
//! [`Plan`], and writes every result into a [`QaFolder`] at once. [`Report`] computes the numbers, printed beside the
//! [papers' own](Published); [`compare`] tests whether two columns differ; [`replay`] computes the same outputs from the tape,
//! without a model.
//!
//! # Invariants
//! * No reply is used before it is on the tape, so no call is ever repeated.
//! * A report follows from manifest and results alone: scored again offline, it is the same.
//! * Methods are names here. Every method of `memory` can be measured.

mod case;
mod cited;
mod compare;
mod folder;
mod item;
pub(crate) mod lines;
mod load;
mod margin;
mod outcome;
mod page;
mod papers;
mod plan;
mod plot;
mod preset;
mod progress;
mod publish;
mod report;
mod reporting;
mod retrieved;
mod rollout;
mod rows;
pub mod ruler;
mod run;
mod sampled;
mod suite;
mod sweep;
pub(crate) mod tape;
pub(crate) mod tape_key;
pub(crate) mod taped;
mod watch;

pub use case::{Case, Cases, Evidence, Question};
pub use cited::Cited;
pub use compare::{Comparison, compare};
pub use folder::{QaFolder, QaManifest, ScorerDigest, items, manifest, measured};
pub use item::{Column, Item, Line, Measured, Prepared};
pub use outcome::{Grounding, Outcome, abstains, outcome};
pub use papers::{Published, Table};
pub use plan::{Plan, RulerPlan};
pub use plot::draw;
pub use preset::Preset;
pub use progress::Progress;
pub use publish::publish;
pub use report::Report;
pub use reporting::write_report;
pub use rollout::{RolloutCount, write_rollouts};
pub use rows::{Answered, OutcomeRow, StepRow};
pub use run::{ask, replay};
pub use sampled::Sampled;
pub use suite::QaSuite;
pub use sweep::sweep;
pub use tape::{CallRecord, Scope, Tape};
pub use taped::Backend;
