//! The questions for which graphs are built.

use serde::{Deserialize, Serialize};
use store::Digest;

use crate::core::named::named;
use crate::core::options::{OptionKind, OptionSpec, Stage};

/// The target of a graph. A graph that knows its question is small and specific, and belongs to that question
/// alone: the cost of reading the text is paid for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Focus {
    /// One graph for any question, built during ingest.
    None,
    /// A graph for each question, built when the question is asked (the paper).
    #[default]
    Question,
    /// A graph for each of several questions, all built in one reading: each block is sent with all questions at once.
    Set,
}

named!(Focus: None = "none", Question = "question", Set = "set");

/// Options of MindGraph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub focus: Focus,
    /// The known questions; [`Focus::None`] needs none.
    pub questions: Vec<String>,
    /// Tokens of a block; by default 8,192 as in the paper, and a quarter of the builder's context at most.
    pub block_tokens: Option<usize>,
    /// Calls that may be made for one answer (paper: 40).
    #[serde(rename = "max_iterations")]
    pub max_rounds: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { focus: Focus::default(), questions: Vec::new(), block_tokens: None, max_rounds: 40 }
    }
}

impl Options {
    /// Whatever graphs are to be built for, each once.
    pub(super) fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        match self.focus {
            Focus::None => targets.push(Target::Any),
            Focus::Question | Focus::Set => {
                for question in &self.questions {
                    let target = Target::question(question);
                    if !targets.contains(&target) {
                        targets.push(target);
                    }
                }
            }
        }
        targets
    }

    /// Which graph answers a question.
    pub(super) fn target(&self, question: &str) -> Target {
        match self.focus {
            Focus::None => Target::Any,
            Focus::Question | Focus::Set => Target::question(question),
        }
    }
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "focus",
        value_name: "FOCUS",
        kind: OptionKind::Name(&["none", "question", "set"]),
        stage: Stage::Prepare,
        required_with: None,
        help: "What mindgraph builds its graph for: question (the one that is asked), none (any question, built by ingest) \
               or set (all questions of --questions, in one reading)",
    },
    OptionSpec {
        name: "questions",
        value_name: "FILE",
        kind: OptionKind::Lines,
        stage: Stage::Prepare,
        required_with: Some(("focus", "set")),
        help: "A file with a question a line, for which mindgraph builds graphs ahead of time",
    },
    OptionSpec::MAX_ITERATIONS,
];

/// The target of one graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Any question.
    Any,
    /// This one.
    Question(String),
}

impl Target {
    /// A graph for this question; white space around it does not count.
    pub fn question(question: &str) -> Target {
        Target::Question(question.trim().to_owned())
    }

    /// The name of the note on a block in which the edits for this graph are kept.
    pub(super) fn note(&self) -> String {
        let digest = match self {
            Target::Any => Digest::of(&["any"]),
            Target::Question(question) => Digest::of(&["question", question]),
        };
        format!("mindgraph.edits.{}", &digest.to_string()[..16])
    }
}
