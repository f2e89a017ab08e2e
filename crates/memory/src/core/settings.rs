//! Settings of one run of a method: those that all methods have, and the options of each.

use std::any::Any;
use std::fmt::Debug;

use crate::core::method::Method;
use crate::core::named::named;
use crate::core::options::OptionSet;
use crate::core::profile::Profile;

/// The order of the parts of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As the papers print it: one user turn, the question early.
    Paper,
    /// The shared prefix first: instructions in the system turn, then the text that grows, the question last.
    SharedFirst,
}

named!(Layout: Paper = "paper", SharedFirst = "shared-first");

/// What an answer consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// A sentence that states the short answer; what [`Settings::answer_rules`] ask for, if there are any.
    Sentence,
    /// The short answer alone.
    Short,
    /// What [`Settings::answer_rules`] ask for; it is always written by the model and never chosen from the evidence.
    Free,
}

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    pub method: &'static dyn Method,
    pub layout: Layout,
    /// The profile of all agents; by default each agent has that of its model.
    pub profile: Option<Profile>,
    /// Tokens of a page; by default a sixteenth of the model's context, at most 2,048 (GAM, section 3.1.3).
    pub page_tokens: Option<usize>,
    /// Tokens of retrieved pages in one prompt; by default half of the model's context.
    pub evidence_tokens: Option<usize>,
    pub temperature: f32,
    pub seed: u64,
    /// Rules for the form of answers, one line with a dash each, in place of the usual ones. Only the answering prompt has
    /// them, in every method; benchmarks use it.
    pub answer_rules: Option<&'static str>,
    pub answer_form: AnswerForm,
    /// The options of a multiple-choice question, which only the answering prompt has; empty for an open question.
    pub choices: Vec<String>,
    /// What a method that searches once searches for in place of the question, which it answers as it is
    /// ([`crate::search_query`]).
    pub search_query: Option<String>,
    /// Keep the KV cache of prompt prefixes beside the corpus for the next question.
    pub keep_prefixes: bool,
    /// Options of methods, each under its own type.
    pub method_options: OptionSet,
}

impl Settings {
    /// The defaults for a method.
    pub fn new(method: &'static dyn Method) -> Settings {
        Settings {
            method,
            layout: Layout::SharedFirst,
            profile: None,
            page_tokens: None,
            evidence_tokens: None,
            temperature: 0.3,
            seed: 0,
            answer_rules: None,
            answer_form: AnswerForm::Sentence,
            choices: Vec::new(),
            search_query: None,
            keep_prefixes: false,
            method_options: OptionSet::default(),
        }
    }

    /// The options of one method, by the type of its options.
    pub fn options<T: Any + Clone + Default>(&self) -> T {
        self.method_options.get()
    }

    /// Replaces the options of one method.
    pub fn set_options<T: Any + Debug + Send + Sync>(&mut self, options: T) {
        self.method_options.set(options);
    }

    /// The same settings with other options of one method.
    #[must_use]
    pub fn with_options<T: Any + Debug + Send + Sync>(mut self, options: T) -> Settings {
        self.set_options(options);
        self
    }
}
