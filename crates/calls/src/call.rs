//! One request to a language model, complete and self-contained.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{Prompt, Reply, Stability, TokenLogprob, ToolUse};

/// The agent on whose behalf a call is made; models are assigned by agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    /// Writes what is remembered (GAM's memorizer, summaries).
    Memorizer,
    /// Plans searches and integrates what they find.
    Researcher,
    /// Decides whether something suffices or is useful.
    Judge,
    /// Extracts entities, triples and graph operations.
    Builder,
    /// Writes the answer that the user reads.
    Responder,
}

impl Agent {
    /// Every agent, in the order in which they first speak.
    pub const ALL: [Agent; 5] = [Agent::Memorizer, Agent::Researcher, Agent::Judge, Agent::Builder, Agent::Responder];
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Agent::Memorizer => "memorizer",
            Agent::Researcher => "researcher",
            Agent::Judge => "judge",
            Agent::Builder => "builder",
            Agent::Responder => "responder",
        })
    }
}

/// Names the run of a method that a call belongs to, so that its calls can be scheduled and traced together. 0 is no run
/// in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord, serde::Serialize)]
pub struct WorkflowId(pub u64);

/// Whose call it is. What the calls of one tenant leave in a cache is never used for, or visible to, another. The default is
/// the local user, for whom no key is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct TenantId(u64);

impl TenantId {
    /// The user of this machine.
    pub const LOCAL: TenantId = TenantId(0);

    /// A tenant by a number that is the same in every process; 0 is the local user.
    pub fn new(number: u64) -> TenantId {
        TenantId(number)
    }

    /// The number that it was made from.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Which adapter of its agent's model a call runs with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum AdapterChoice {
    /// The one that the agent is configured with, if any.
    #[default]
    OfAgent,
    /// None.
    Base,
    /// The one of this name.
    Named(Arc<str>),
}

/// How urgent a call is: a higher priority is served first, and a lower one not put off for ever. What runs is not interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// A client waits for this text.
    Interactive,
    /// A step of a method that leads to an answer.
    #[default]
    Workflow,
    /// Ingest and indexing.
    Bulk,
}

/// The form that the answer must have. Whatever is sampled, the answer has it.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputFormat {
    /// Free text, ended by the model or by the limit.
    Text,
    /// Exactly one of these strings.
    Choice(Vec<String>),
    /// Compact JSON that validates against this JSON schema (see [`crate::schema`]).
    Json(serde_json::Value),
}

/// What a call may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Upper bound of generated tokens of the answer. JSON is closed before it is reached.
    pub max_output_tokens: usize,
    /// Upper bound of tokens of a thought before the answer, the marker that closes it included; 0 answers at once. The
    /// room for the answer is reserved beside it.
    pub thinking_tokens: usize,
    /// Free text does not end before it has this many tokens; for measurements that need answers of one length.
    pub min_output_tokens: usize,
    /// End an answer that repeats itself without end ([`crate::loops`]): free text, or one string of a form; and allow no
    /// long run of blanks in a form. Small models loop until they reach the limit.
    pub stop_loops: bool,
}

impl Limits {
    /// Tokens that a reply may have in all, its thought included.
    pub fn reply_tokens(&self) -> usize {
        self.max_output_tokens.saturating_add(self.thinking_tokens)
    }
}

/// How the next token is drawn. `temperature == 0.0` is greedy: only penalties and biases change which token that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 means arg-max.
    pub temperature: f32,
    /// Keep the smallest set of tokens whose probabilities sum to this; 1 keeps all.
    pub top_p: f32,
    /// Keep this many of the most likely tokens; 0 keeps all.
    pub top_k: usize,
    /// Drop tokens less likely than this fraction of the most likely; 0 drops none.
    pub min_p: f32,
    /// Subtracted from a token's logit for each of its occurrences in the reply; 0 is none.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of a token that occurs in the reply; 0 is none.
    pub presence_penalty: f32,
    /// Divides the logit of a token of prompt or reply if it is above 0, else multiplies it; 1 is none. Must be above 0.
    pub repetition_penalty: f32,
    /// Added to the logits of tokens, by their ids. Cannot allow what the output format forbids.
    pub logit_bias: BTreeMap<u32, f32>,
    /// The same seed on the same prompt gives the same text.
    pub seed: u64,
}

impl Sampling {
    /// Always the most likely token.
    pub const GREEDY: Sampling = Sampling {
        temperature: 0.0,
        top_p: 1.0,
        top_k: 0,
        min_p: 0.0,
        frequency_penalty: 0.0,
        presence_penalty: 0.0,
        repetition_penalty: 1.0,
        logit_bias: BTreeMap::new(),
        seed: 0,
    };

    /// Draws from the whole distribution at `temperature`.
    pub fn at(temperature: f32, seed: u64) -> Self {
        Sampling { temperature, seed, ..Self::GREEDY }
    }
}

/// A piece of a reply while it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Piece<'a> {
    /// A part of the thought before the answer.
    Thought(&'a str),
    /// A part of the text, with the log-probabilities of its tokens if the call asks for them. Text may lag behind its
    /// tokens, and a piece may have no text.
    Text(&'a str, &'a [TokenLogprob]),
    /// The name of a tool that the model begins to call.
    ToolCall(&'a str),
    /// A part of the arguments of that call.
    Arguments(&'a str),
}

/// Receives a reply as it is written, in pieces of whole characters.
#[derive(Clone)]
pub struct OnText(Arc<dyn Fn(Piece<'_>) + Send + Sync>);

impl OnText {
    /// Wraps a function that receives the text alone; it runs on a thread of the engine and must be quick.
    pub fn new(f: impl Fn(&str) + Send + Sync + 'static) -> Self {
        OnText::pieces(move |piece| {
            if let Piece::Text(text, _) = piece
                && !text.is_empty()
            {
                f(text);
            }
        })
    }

    /// Wraps a function that receives every piece; it runs on a thread of the engine and must be quick.
    pub fn pieces(f: impl Fn(Piece<'_>) + Send + Sync + 'static) -> Self {
        OnText(Arc::new(f))
    }

    /// Hands over a piece of text.
    pub fn send(&self, text: &str) {
        self.send_piece(Piece::Text(text, &[]));
    }

    /// Hands over a piece.
    pub fn send_piece(&self, piece: Piece<'_>) {
        (self.0)(piece);
    }
}

impl fmt::Debug for OnText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnText")
    }
}

/// One request to a language model.
#[derive(Debug, Clone)]
pub struct Call {
    /// On whose behalf.
    pub agent: Agent,
    /// Which step of which method, for example `gam.plan`; names the line in traces.
    pub step: &'static str,
    /// Which run of the method.
    pub workflow: WorkflowId,
    /// Whose caches it may use and add to.
    pub tenant: TenantId,
    /// What is asked.
    pub prompt: Prompt,
    /// In which form the answer must come.
    pub output_format: OutputFormat,
    /// What it may cost.
    pub limits: Limits,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// How urgent it is.
    pub priority: Priority,
    /// Where to send text while it is written, if the caller streams.
    pub on_text: Option<OnText>,
    /// Free text ends before the first of these; what may be the beginning of one is not sent to `on_text` yet.
    pub stop: Vec<String>,
    /// Report the log-probability of every token, and of this many alternatives to it.
    pub logprobs: Option<usize>,
    /// With which adapter.
    pub adapter: AdapterChoice,
    /// How the reply may use the tools of the prompt; without it the reply calls none.
    pub tools: Option<ToolUse>,
}

impl Call {
    /// A greedy workflow call for free text; the other fields are set by struct update.
    pub fn new(agent: Agent, step: &'static str, prompt: Prompt, max_output_tokens: usize) -> Self {
        Call {
            agent,
            step,
            workflow: WorkflowId::default(),
            tenant: TenantId::LOCAL,
            prompt,
            output_format: OutputFormat::Text,
            limits: Limits { max_output_tokens, ..Limits::default() },
            sampling: Sampling::GREEDY,
            priority: Priority::default(),
            on_text: None,
            stop: Vec::new(),
            logprobs: None,
            adapter: AdapterChoice::OfAgent,
            tools: None,
        }
    }

    /// Calls that begin with this one's prompt and continue differently: the common part is computed once.
    pub fn group(&self, suffixes: impl IntoIterator<Item = String>) -> Vec<Call> {
        let with = |suffix| Call { prompt: self.prompt.clone().user(Stability::Volatile, suffix), ..self.clone() };
        suffixes.into_iter().map(with).collect()
    }

    /// The call that continues after this one's reply: the prompt and the reply are not computed again.
    #[must_use]
    pub fn fork(&self, reply: &Reply, next: impl Into<String>) -> Call {
        let prompt = self.prompt.clone().assistant(reply.text.clone()).user(Stability::Volatile, next);
        Call { prompt, ..self.clone() }
    }
}
