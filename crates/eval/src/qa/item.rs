//! The result of each question, one line of `results.jsonl`. All scores follow from these lines.

use std::collections::BTreeMap;

use calls::Usage;
use serde::{Deserialize, Serialize};

use super::case::Question;
use super::cited::Cited;
use super::outcome::{Grounding, Outcome, outcome};
use super::suite::QaSuite;
use super::tape::Scope;
use crate::StepEndings;
use crate::score::{Found, Mark, Scorer};

/// A line of the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum Line {
    Prepared(Prepared),
    Answered(Box<Item>),
    Measured(Measured),
}

/// Time and peak memory of a phase on this machine; lines of one scope are added up. Not replayed, since another
/// machine has other times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The preparation of a case, or one question if questions are asked one at a time.
    #[serde(flatten)]
    pub scope: Scope,
    /// Wall-clock seconds; absent if other work ran concurrently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Rejected replies, or skipped steps.
    pub fallbacks: usize,
    /// Peak memory of the process during the phase, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

impl Measured {
    /// A phase that ran concurrently with others, so that neither time nor memory is its own.
    pub(super) fn untimed(scope: Scope, fallbacks: usize) -> Measured {
        Measured { scope, seconds: None, fallbacks, peak_memory_bytes: None }
    }
}

/// The cost of a method's preparation of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    pub model: String,
    pub method: String,
    pub case: String,
    /// Tokens of its texts, by the answering model.
    pub text_tokens: usize,
    pub usage: Usage,
    /// Endings of the replies of each step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endings: StepEndings,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub model: String,
    pub method: String,
    pub case: String,
    #[serde(flatten)]
    pub question: Question,
    /// Empty if the method failed.
    pub answer: String,
    /// The citations of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Cited>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The judges' replies, by scorer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<String, String>,
    pub scores: BTreeMap<String, Mark>,
    /// For suites with outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The verdicts and confidence of the answer, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounding: Option<Grounding>,
    /// What a model read, the most probable first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<memory::grounding::Reading>,
    /// For each piece of evidence the rank, from 1, of the first retrieved passage that contains it; absent if the data
    /// set names no evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Vec<Option<usize>>>,
    /// The same for each session with evidence, among the retrieved sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_sessions: Option<Vec<Option<usize>>>,
    /// Rejected replies, or skipped steps.
    #[serde(default)]
    pub fallbacks: usize,
    pub usage: Usage,
    /// Endings of the replies of each step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endings: StepEndings,
    /// See [`crate::score::compaction`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<f64>,
}

/// A column of a comparison: a model with a method.
pub type Column = (String, String);

impl Item {
    /// The question, the model and the method of an answer.
    pub fn key(&self) -> (Column, (String, String)) {
        (self.column(), (self.case.clone(), self.question.id.clone()))
    }

    /// The model and the method.
    pub fn column(&self) -> Column {
        (self.model.clone(), self.method.clone())
    }

    /// Scores the answer by every scorer that applies, and determines the outcome if the suite has outcomes. A
    /// question whose method failed scores 0 and is wrong.
    pub fn score(&mut self, suite: QaSuite, scorers: &[Scorer]) {
        if suite.has_outcomes() {
            let abstained = self.grounding.and_then(|grounding| grounding.abstained);
            let answered = || outcome(&self.question, &self.answer, abstained);
            self.outcome = Some(if self.failed.is_some() { Outcome::Wrong } else { answered() });
        }
        let applies = scorers.iter().filter(|scorer| suite.applies(**scorer, &self.question));
        let mark = |scorer: &Scorer| {
            let verdict = self.verdicts.get(&scorer.to_string()).map(String::as_str);
            let mark = match self.failed {
                Some(_) => Mark { value: 0.0, by: Some("failed".into()) },
                None => scorer.score(&self.question, &self.answer, verdict),
            };
            (scorer.to_string(), mark)
        };
        self.scores = applies.map(mark).collect();
    }

    /// Whether a replay has the same result. Results of earlier versions have no places of citations.
    pub fn is_replayed_by(&self, again: &Item) -> bool {
        if self.citations.iter().any(|cited| cited.page_number.is_some()) {
            return self == again;
        }
        let without_places = |item: &Item| {
            let citations = item.citations.iter().cloned().map(Cited::without_place).collect();
            Item { citations, ..item.clone() }
        };
        without_places(self) == without_places(again)
    }

    /// The evidence as input of ranking scorers.
    pub fn evidence(&self) -> Option<Vec<Found>> {
        self.found.as_deref().map(graded)
    }

    /// The sessions with evidence as input of ranking scorers.
    pub fn sessions(&self) -> Option<Vec<Found>> {
        self.found_sessions.as_deref().map(graded)
    }
}

fn graded(ranks: &[Option<usize>]) -> Vec<Found> {
    ranks.iter().map(|rank| Found { grade: 1, rank: *rank }).collect()
}
