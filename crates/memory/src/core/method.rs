//! What a method is: a name, a description, options, and how it prepares a corpus and answers from it. The settings and the
//! state of a run are here too: they contain a method, and a method takes them.

use std::any::Any;
use std::fmt::{self, Debug};

use calls::{Caller, Embedder, OnText, Priority, TenantId, WorkflowId};
use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};
use store::{Corpus, Writer};

use crate::core::about::About;
use crate::core::access::Access;
use crate::core::error::Result;
use crate::core::graph_view::GraphKind;
use crate::core::options::{MethodOptions, OptionSet, OptionSpec};
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::profile::Profile;
use crate::core::settings::{AnswerForm, Layout};
use crate::core::trace::Trace;

/// A way to answer questions from a corpus.
///
/// Futures are not `Send`: an open corpus stays on one thread.
pub trait Method: Send + Sync {
    /// Its name on the command line, in HTTP and in JSON, in lower case.
    fn name(&self) -> &'static str;

    /// What it does, from which paper, and where it departs from it.
    fn about(&self) -> &'static About;

    /// The options that a user may set.
    fn own_options(&self) -> MethodOptions {
        MethodOptions::NONE
    }

    /// The flags with which `ingest` prepares a corpus for these settings, beside the method's name; a hint to users.
    fn preparation_flags(&self, _settings: &Settings) -> String {
        String::new()
    }

    /// Whether it embeds texts or queries, and so needs an embedding model.
    fn embeds(&self) -> bool {
        true
    }

    /// Whether it can answer from a corpus that is prepared in part, from the part that is.
    fn answers_in_part(&self) -> bool {
        false
    }

    /// Whether what it prepares depends on the question, so that a corpus is prepared anew for each.
    fn prepares_for_question(&self) -> bool {
        false
    }

    /// Adds a question that is going to be asked, for a method whose preparation depends on it.
    fn expect_question(&self, _question: &str, _settings: &mut Settings) {}

    /// Prepares for whatever is asked later, for a method whose preparation depends on the question.
    fn expect_any_question(&self, _settings: &mut Settings) {}

    /// The method that this one runs on a corpus; `None` for a method that runs itself.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn choose(&self, _corpus: &Corpus, _session: &Session<'_>) -> Result<Option<Choice>> {
        Ok(None)
    }

    /// The methods that [`Method::choose`] chooses from.
    fn may_choose(&self) -> &'static [&'static dyn Method] {
        &[]
    }

    /// Counts what [`Method::prepare`] would do.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn missing(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Missing>;

    /// Makes what the method answers from, as far as it is missing; each step is durable before the next.
    ///
    /// # Errors
    /// If a call or the store fails; what was done until then stays.
    fn prepare<'a>(
        &'a self,
        writer: &'a mut Writer,
        session: &'a Session<'_>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>>;

    /// Answers a question from a prepared corpus.
    ///
    /// # Errors
    /// If a call or the store fails.
    fn ask<'a>(
        &'a self,
        question: &'a str,
        corpus: Access<'a>,
        session: &'a Session<'_>,
    ) -> LocalBoxFuture<'a, Result<Answer>>;

    /// The graph that it makes of a corpus, if it makes one.
    fn graph(&self) -> Option<&'static GraphKind> {
        None
    }
}

impl dyn Method {
    /// The documentation of its options.
    pub fn option_specs(&self) -> &'static [OptionSpec] {
        self.own_options().specs
    }

    /// Whether an option has an effect on it, or on a method that it may choose.
    pub fn has_option(&self, name: &str) -> bool {
        self.option_specs().iter().any(|spec| spec.name == name)
            || self.may_choose().iter().any(|method| method.has_option(name))
    }

    /// Its options as they are set, by name.
    pub fn options(&self, settings: &Settings) -> Map<String, Value> {
        (self.own_options().values)(&settings.method_options)
    }

    /// Sets options by name; names that the method does not have are left to other methods.
    ///
    /// # Errors
    /// Names the option whose value is invalid; the settings are unchanged then.
    pub fn set_options(
        &self,
        changes: &Map<String, Value>,
        settings: &mut Settings,
    ) -> std::result::Result<(), String> {
        (self.own_options().change)(changes, &mut settings.method_options)
    }
}

impl fmt::Display for dyn Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Debug for dyn Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for dyn Method {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Method {}

impl serde::Serialize for dyn Method {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A method that another one has chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub method: &'static dyn Method,
    /// Why, in a sentence without capital and full stop.
    pub why: String,
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
    /// What a method that searches once searches for in place of the question, which it answers
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

/// The state of one run: a caller, an embedder, settings and a trace.
pub struct Session<'a> {
    pub caller: &'a dyn Caller,
    pub embedder: &'a dyn Embedder,
    pub settings: Settings,
    pub trace: &'a Trace,
    /// The workflow of all calls.
    pub workflow: WorkflowId,
    pub tenant: TenantId,
    pub priority: Priority,
    /// Receives the text of the answer during generation.
    pub on_text: Option<OnText>,
}

impl Session<'_> {
    /// The same session with another method.
    pub fn with_method(&self, method: &'static dyn Method) -> Session<'_> {
        Session {
            caller: self.caller,
            embedder: self.embedder,
            settings: Settings { method, ..self.settings.clone() },
            trace: self.trace,
            workflow: self.workflow,
            tenant: self.tenant,
            priority: self.priority,
            on_text: self.on_text.clone(),
        }
    }
}
