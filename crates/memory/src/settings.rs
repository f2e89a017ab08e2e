//! What a user may choose about a method.

use crate::{comorag, memcot, mindgraph};

/// How a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// General Agentic Memory.
    Gam,
    /// MemCoT: search after search with a short-term memory.
    Memcot,
    /// Probing, reading and putting together over three layers of knowledge.
    Comorag,
    /// A concept graph built for the question.
    Mindgraph,
    /// The nearest pages and one call.
    Rag,
    /// The whole text and one call.
    Direct,
}

/// The order of the parts of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// As the papers print it: one user turn, the question early.
    Paper,
    /// What calls have in common first: instructions in the system turn, then the text that grows, the question last.
    SharedFirst,
}

/// What the researcher hands to whoever answers (GAM, table 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputForm {
    /// The integrated notes.
    Integration,
    /// The notes and the pages that they come from.
    Pages,
    /// The notes and the sentences of those pages that bear on the question.
    Extraction,
}

/// How pages are searched where no method decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchTool {
    /// By their words.
    Bm25,
    /// By their meaning.
    Dense,
    /// Both, joined by reciprocal rank.
    Fused,
}

/// Where MemCoT searches for turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemcotStore {
    /// By words and by meaning, fused.
    Hybrid,
    /// Over a graph of entities and relations, as LightRAG does.
    Lightrag,
}

/// Gives the variants of an enum their names.
macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),*) => {
        impl $type {
            /// Every one.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($type::$variant => $name),* })
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                match name {
                    $($name => Ok($type::$variant),)*
                    other => Err(format!("`{other}` is not one of {}", [$($name),*].join(", "))),
                }
            }
        }
    };
}

pub(crate) use names;

names!(Method: Gam = "gam", Memcot = "memcot", Comorag = "comorag", Mindgraph = "mindgraph", Rag = "rag", Direct = "direct");
names!(MemcotStore: Hybrid = "hybrid", Lightrag = "lightrag");
names!(Layout: Paper = "paper", SharedFirst = "shared-first");
names!(SearchTool: Bm25 = "bm25", Dense = "dense", Fused = "fused");
names!(OutputForm: Integration = "integration", Pages = "pages", Extraction = "extraction");

/// What governs a run of a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub method: Method,
    pub layout: Layout,
    pub output: OutputForm,
    /// Rounds of plan, search, integrate and reflect (the paper's maximum reflection depth).
    pub max_iterations: usize,
    /// Pages that each tool may bring.
    pub k: usize,
    /// Tokens of a page; by default a sixteenth of the model's context, 2,048 at most as in the paper.
    pub page_tokens: Option<usize>,
    /// Tokens of retrieved pages in one prompt; by default half of the model's context.
    pub evidence_tokens: Option<usize>,
    pub temperature: f32,
    pub seed: u64,
    /// MemCoT's own.
    pub memcot: memcot::Options,
    /// ComoRAG's own.
    pub comorag: comorag::Options,
    /// MindGraph's own.
    pub mindgraph: mindgraph::Options,
    /// Rules for the form of answers, a line with a dash each, in place of the usual form: data sets want answers of their
    /// own. Whoever answers is told them, in every method.
    pub answer_rules: Option<&'static str>,
    /// The options of a multiple-choice question, which only the call that answers is shown; none for a question that is
    /// answered freely.
    pub options: Vec<String>,
    /// Keys and values of what prompts begin with are kept beside the corpus for the next question.
    pub keep_prefixes: bool,
}

impl Settings {
    /// The same with so many passages by search, where a number is said: pages, or MemCoT's turns.
    #[must_use]
    pub fn with_k(mut self, k: Option<usize>) -> Settings {
        if let Some(k) = k {
            (self.k, self.memcot.k) = (k, k);
        }
        self
    }

    /// The same with so many rounds, where a number is said: of research, of search, of probing or of tools, as the method
    /// has it.
    #[must_use]
    pub fn with_rounds(mut self, rounds: Option<usize>) -> Settings {
        if let Some(rounds) = rounds {
            (self.max_iterations, self.memcot.steps) = (rounds, rounds);
            (self.comorag.max_cycles, self.mindgraph.max_rounds) = (rounds, rounds);
        }
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: Method::Gam,
            layout: Layout::SharedFirst,
            output: OutputForm::Integration,
            max_iterations: 3,
            k: 5,
            page_tokens: None,
            evidence_tokens: None,
            temperature: 0.3,
            seed: 0,
            memcot: memcot::Options::default(),
            comorag: comorag::Options::default(),
            mindgraph: mindgraph::Options::default(),
            answer_rules: None,
            options: Vec::new(),
            keep_prefixes: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_rounds_or_passages_reaches_every_method() {
        let usual = Settings::default();
        assert_eq!(usual.clone().with_k(None).with_rounds(None), usual);
        let Settings { k, max_iterations, memcot, comorag, mindgraph, .. } = usual.with_k(Some(7)).with_rounds(Some(2));
        assert_eq!((k, memcot.k), (7, 7));
        assert_eq!((max_iterations, memcot.steps, comorag.max_cycles, mindgraph.max_rounds), (2, 2, 2, 2));
    }
}
