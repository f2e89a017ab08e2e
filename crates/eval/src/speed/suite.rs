//! The speed suites by name.

use std::fmt;
use std::str::FromStr;

use crate::names;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpeedSuite {
    /// The prefill of one long prompt.
    Prefill,
    /// Long answers to short prompts, alone and concurrently.
    Decode,
    /// Answers in a JSON schema, alone and concurrently, as agents write them.
    Json,
    /// Embedding of texts.
    Embed,
    /// Eight concurrent prompts with a common prefix of 4,096 tokens.
    Siblings,
    /// GAM's researcher on questions about one conversation, concurrently.
    GamTrace,
    /// Inter-token latency of an interactive answer, alone and while many texts are embedded.
    Itl,
    /// Loading: from process start to the first token.
    Load,
    /// The first token about a long text, computed and restored after a restart.
    Snapshot,
    /// Memorising documents and answering a question from them.
    Ask,
    /// Chats over HTTP with more and more clients; measured by `bench serve`, separately from the others.
    Serve,
}

impl SpeedSuite {
    /// Every suite that needs no server, in the best order of measurement.
    pub const ALL: [SpeedSuite; 10] = [
        SpeedSuite::Prefill,
        SpeedSuite::Decode,
        SpeedSuite::Json,
        SpeedSuite::Embed,
        SpeedSuite::Siblings,
        SpeedSuite::GamTrace,
        SpeedSuite::Itl,
        SpeedSuite::Load,
        SpeedSuite::Snapshot,
        SpeedSuite::Ask,
    ];

    fn name(self) -> &'static str {
        match self {
            SpeedSuite::Prefill => "prefill",
            SpeedSuite::Decode => "decode",
            SpeedSuite::Json => "json",
            SpeedSuite::Embed => "embed",
            SpeedSuite::Siblings => "siblings",
            SpeedSuite::GamTrace => "gam-trace",
            SpeedSuite::Itl => "itl",
            SpeedSuite::Load => "load",
            SpeedSuite::Snapshot => "snapshot",
            SpeedSuite::Ask => "ask",
            SpeedSuite::Serve => "serve",
        }
    }

    /// True if the suite needs an embedding model.
    pub fn embeds(self) -> bool {
        matches!(self, SpeedSuite::Embed | SpeedSuite::Itl | SpeedSuite::Ask)
    }
}

impl fmt::Display for SpeedSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SpeedSuite {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        names::value(&SpeedSuite::ALL.map(|suite| (suite, suite.name())), typed)
    }
}
