//! What a method is: a name, a description, options, and how it prepares a corpus and answers from it.

use std::fmt;

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};
use store::{Corpus, Writer};

use crate::core::access::Access;
use crate::core::error::Result;
use crate::core::graph_view::GraphKind;
use crate::core::options::OptionSpec;
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;
use crate::core::settings::Settings;

/// A way to answer questions from a corpus.
///
/// Futures are not `Send`: an open corpus stays on one thread.
pub trait Method: Send + Sync {
    /// Its name on the command line, in HTTP and in JSON, in lower case.
    fn name(&self) -> &'static str;

    /// What it does, from which paper, and where it departs from it.
    fn about(&self) -> &'static About;

    /// The options that a user may set.
    fn option_specs(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Its options as they are set, by name.
    fn options(&self, _settings: &Settings) -> Map<String, Value> {
        Map::new()
    }

    /// Sets options by name; names that the method does not have are left to other methods.
    ///
    /// # Errors
    /// Names the option whose value is invalid; the settings are unchanged then.
    fn set_options(&self, _changes: &Map<String, Value>, _settings: &mut Settings) -> std::result::Result<(), String> {
        Ok(())
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

impl fmt::Display for dyn Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for dyn Method {
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

/// A description of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The paper; none for a baseline.
    pub paper: Option<Paper>,
    /// The source of the method's module, whose documentation describes it.
    pub(crate) module: &'static str,
}

/// A paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    pub title: &'static str,
    pub authors: &'static str,
    /// Its arXiv number, if it has one.
    pub arxiv: Option<&'static str>,
}

impl About {
    /// What the method does and where it departs from its paper.
    pub fn documentation(&self) -> String {
        let lines = self.module.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }

    /// The first sentence of that.
    pub fn summary(&self) -> String {
        let documentation = self.documentation();
        let paragraph: Vec<&str> = documentation.lines().take_while(|line| !line.is_empty()).collect();
        let paragraph = paragraph.join(" ");
        paragraph.split_once(". ").map_or(paragraph.as_str(), |(sentence, _)| sentence).trim_end_matches('.').to_owned()
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.authors, self.title)?;
        self.arxiv.map_or(Ok(()), |arxiv| write!(f, ". arXiv:{arxiv}"))
    }
}
