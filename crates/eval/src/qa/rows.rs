//! The rows of a report's tables.

use std::collections::BTreeMap;

use calls::Usage;
use memory::grounding::ReliabilityBin;
use serde::Serialize;

use super::cited::Cited;
use crate::Endings;

/// The numbers of one model and method for one group of questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub model: String,
    pub method: String,
    pub group: String,
    pub questions: usize,
    /// Questions that the method failed to answer; they score 0.
    pub failed: usize,
    /// Means by scorer over the questions to which it applies, from 0 to 1.
    pub scores: BTreeMap<String, f64>,
    /// Half the width of the 95 % confidence interval of these means, by the normal approximation; none for fewer than 20
    /// questions or equal scores.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// `recall@5`, `ndcg@10`, ...: means over the questions with evidence; `session_recall@5`, ...: the same by session.
    pub evidence: BTreeMap<String, f64>,
}

/// The outcomes of the questions of one group, by one model and method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutcomeRow {
    pub model: String,
    pub method: String,
    pub group: String,
    pub questions: usize,
    pub right: usize,
    pub wrong: usize,
    pub abstained: usize,
    /// Right answers, and abstentions where the documents do not hold the answer.
    pub correct: usize,
    /// Statements of the answers by verdict, where methods give verdicts.
    pub supported: usize,
    pub contradicted: usize,
    pub unsupported: usize,
    pub quoted: usize,
    /// Supported statements of wrong answers.
    pub supported_wrong: usize,
    /// How well confidence separates answerable from unanswerable questions ([`memory::grounding::auroc`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auroc_answerable: Option<f64>,
    /// How well confidence separates right from wrong answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auroc_right: Option<f64>,
    /// The mean squared distance of confidence from whether the question is answerable; 0 is best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brier_answerable: Option<f64>,
    /// How many of the questions with about the same confidence are answerable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reliability: Vec<ReliabilityBin>,
}

/// How the replies of one step of one model and method ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepRow {
    pub model: String,
    pub method: String,
    pub step: String,
    #[serde(flatten)]
    pub endings: Endings,
}

/// The cost of one model and method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    pub model: String,
    pub method: String,
    pub questions: usize,
    /// All preparation together.
    pub prepare: Usage,
    /// Wall-clock seconds of preparation if all questions were asked one at a time; otherwise cases run concurrently.
    pub prepare_seconds: Option<f64>,
    /// Rejected replies or skipped steps of preparation.
    pub prepare_fallbacks: usize,
    /// All questions together; seconds are those of calls, which run concurrently.
    pub answer: Usage,
    /// Wall-clock seconds of the questions, if all of them were asked one at a time.
    pub answer_seconds: Option<f64>,
    /// Rejected replies or skipped steps of answering.
    pub answer_fallbacks: usize,
    /// Peak memory of the process while this method ran: during preparation, and if questions are asked one at a time,
    /// during questions.
    pub peak_memory_bytes: Option<u64>,
    /// The mean of the questions.
    pub compaction: Option<f64>,
}

/// An answer with its citations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answered {
    pub case: String,
    pub question: String,
    pub golds: Vec<String>,
    pub model: String,
    pub method: String,
    pub answer: String,
    pub citations: Vec<Cited>,
    pub failed: Option<String>,
}
