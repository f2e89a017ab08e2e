//! For which questions graphs are built, and how.

use std::fmt;
use std::str::FromStr;

use store::Digest;

/// What a graph is built for. A graph that knows its question is small and to the point, and belongs to that question
/// alone: reading the text costs as much for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Focus {
    /// One graph for any question, built when the text is put in.
    None,
    /// A graph for each question, built when it is asked (the paper).
    #[default]
    Question,
    /// A graph for each of several questions, all built in one reading: each block goes out with all questions at once.
    Set,
}

impl Focus {
    const ALL: [Focus; 3] = [Focus::None, Focus::Question, Focus::Set];
}

impl fmt::Display for Focus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Focus::None => "none",
            Focus::Question => "question",
            Focus::Set => "set",
        })
    }
}

impl FromStr for Focus {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Focus::ALL.into_iter().find(|focus| focus.to_string() == name);
        known.ok_or_else(|| format!("`{name}` is not one of none, question, set"))
    }
}

/// What governs MindGraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub focus: Focus,
    /// The questions that are known; none are needed with [`Focus::None`].
    pub questions: Vec<String>,
    /// Tokens of a block; by default 8,192 as in the paper, and a quarter of the builder's context at most.
    pub block_tokens: Option<usize>,
    /// Calls that may be made for one answer (paper: 40).
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

/// What one graph is built for.
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
