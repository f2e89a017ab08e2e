//! What a method returns: an answer with its statements, their verdicts, citations and the cost.

use calls::Usage;

use crate::core::cite::Citation;
use crate::core::named::named;
use crate::core::preparation::Prepared;

/// An answer with its citations and its cost.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Answer {
    pub answer: String,
    /// The short form: a span of the evidence, several spans, "yes" or "no"; only where it was chosen from the evidence. The
    /// answer is then the sentences that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// The probability that the short answer is right, where it was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Every statement of the answer with its verdict; empty if it states nothing.
    pub statements: Vec<Statement>,
    /// The probability that the evidence holds an answer, where it was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answerable: Option<f64>,
    /// Whether the answer was withheld because the evidence probably holds none, where that is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abstained: Option<bool>,
    /// The name of the method that gave it.
    pub method: &'static str,
    /// The responder's model.
    pub model: String,
    pub embedder: String,
    /// The spans that support the statements, the most important first; none for what is not supported.
    pub citations: Vec<Citation>,
    /// The model's confidence, where the method asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The ids of the nodes that support the answer, where the method answers from a graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cited_nodes: Vec<String>,
    pub usage: Usage,
    /// Why this method was chosen, if the settings left the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// How much of the corpus was prepared for the method that was asked for, if not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
    /// How the answer differs from what was asked for, or why it is withheld, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The search query, if it was not the question alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched_with: Option<String>,
}

impl Answer {
    /// Whether the method decided that there is no answer.
    pub(crate) fn is_withheld(&self) -> bool {
        self.abstained == Some(true)
    }

    /// Whether the sources support one of its statements.
    pub(crate) fn is_supported(&self) -> bool {
        self.statements.iter().any(|statement| statement.verdict == Support::Supported)
    }
}

/// A statement of an answer: a sentence, or a clause of one that can be right or wrong by itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Statement {
    pub text: String,
    /// Index of its first character in the answer.
    pub start: u32,
    /// Index after the last character.
    pub end: u32,
    pub verdict: Support,
    /// The span that supports or contradicts it, or that has its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citation: Option<Citation>,
}

/// Whether the sources support a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    Supported,
    /// The sources have another value in its place.
    Contradicted,
    /// Neither was found.
    Unsupported,
    /// The sources have these words, which may not answer the question.
    Quoted,
}

named!(Support: Supported = "supported", Contradicted = "contradicted", Unsupported = "unsupported", Quoted = "quoted");

/// A model's own confidence in its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    High,
    Medium,
    Low,
}

named!(Confidence: High = "high", Medium = "medium", Low = "low");
