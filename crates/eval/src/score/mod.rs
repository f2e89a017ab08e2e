//! Scorers by name: papers use the name "F1" for several functions, so each has its own name here.
//!
//! One file per family. Scorers of answers are pure functions of question, gold answers and prediction, so a run can
//! be scored again later; [`Scorer`] gives them their names and versions. Scorers of rankings take ranks.

mod cascade;
mod compaction;
mod judge;
mod letter;
mod locomo;
mod overlap;
mod porter;
mod ranking;
mod ruler;
mod scorer;
mod squad;
mod words;

pub use cascade::{Rung, cascade};
pub use compaction::compaction;
pub use judge::{Judge, says_yes};
pub use letter::{letter, mc_letter};
pub use locomo::f1_locomo;
pub use overlap::{bleu1, f1_gam};
pub use porter::stem;
pub use ranking::{Found, ndcg_at, recall_at};
pub use ruler::{ruler_all, ruler_gam, ruler_part};
pub use scorer::{Mark, Scorer};
pub use squad::{em_squad, f1_hotpotqa, f1_squad};
pub use words::locomo_words;
pub(crate) use words::{contains_answer, squad_words};
