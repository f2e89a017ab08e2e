//! A record of everything that a method did, one JSON object a line.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use calls::{Agent, Call, Divergence, Finish, Reply, Usage};
use store::Hit;

use crate::core::error::{MemoryError, Result};
use crate::core::outcome::{Confidence, Support};
use crate::grounding::Reading;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A call was answered.
    Call {
        step: String,
        #[serde(rename = "role")]
        agent: Agent,
        model: String,
        prompt: String,
        output: String,
        /// The model's reasoning before the reply; never a source of anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        thought: Option<String>,
        finish: Finish,
        prompt_tokens: usize,
        cached_tokens: usize,
        /// The point at which the prompt diverged from the nearest cached one.
        diverged: Option<Divergence>,
        output_tokens: usize,
        milliseconds: u64,
    },
    /// Texts were scored as continuations of a prompt.
    Score {
        step: String,
        #[serde(rename = "role")]
        agent: Agent,
        model: String,
        prompt: String,
        scores: Vec<ScoreRecord>,
        prompt_tokens: usize,
        cached_tokens: usize,
        milliseconds: u64,
    },
    /// A short answer was chosen from the evidence.
    Short {
        step: String,
        /// The best first; several where the question asks for a list.
        answers: Vec<String>,
        /// The probability that the first is right, of a reading; of a span its share among the candidates.
        probability: f64,
        /// What a model read, the most probable first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        readings: Vec<Reading>,
        /// The probability that the evidence holds an answer; none for yes or no.
        answerable: Option<f64>,
        abstained: bool,
    },
    /// The statements of an answer were checked.
    Statements { step: String, verdicts: Vec<Support> },
    /// A tool was used.
    Search { tool: String, queries: Vec<String>, hits: Vec<HitRecord> },
    /// Pages were packed into a prompt.
    Evidence { step: String, budget_tokens: usize, used_tokens: usize, pages: Vec<i64>, left_out: Vec<i64> },
    /// A memo was too long for a prompt.
    Memo { step: String, entries: usize, left_out: usize },
    /// A block was read for a graph.
    Block {
        block: i64,
        /// Its place among all blocks, from 1.
        number: usize,
        of: usize,
        /// The target of the graph.
        question: String,
        /// True if no reply could be used.
        skipped: bool,
        edits: usize,
        /// Edits whose quotes were not found.
        unverified: usize,
        /// Reasons for refused edits.
        refused: Vec<String>,
    },
    /// A graph was too large for a prompt.
    Graph {
        step: String,
        budget_tokens: usize,
        nodes: usize,
        without_content: usize,
        edges: usize,
        edges_left_out: usize,
        nodes_left_out: usize,
    },
    /// An answer was given from a graph.
    Answer { step: String, cited: Vec<String>, confidence: Confidence },
    /// Turns show pictures, which need a vision model, and none is loaded.
    Unseen { step: String, turns: Vec<i64> },
    /// The KV cache of prompt prefixes was loaded or saved.
    Prefixes { step: String, tokens: usize, refused: Vec<String> },
    /// A reply was invalid, or a step was impossible, and the method continued without it.
    Fallback { step: String, reason: String },
}

/// A hit in the trace.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HitRecord {
    pub page: i64,
    pub score: f32,
}

/// A scored text in the trace.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ScoreRecord {
    pub text: String,
    /// The log-probability of the text and its end.
    pub logprob: f64,
    pub tokens: usize,
}

impl From<&Hit> for HitRecord {
    fn from(hit: &Hit) -> Self {
        HitRecord { page: hit.passage.0, score: hit.score }
    }
}

impl Event {
    /// The record of a call and its reply.
    pub fn call(call: &Call, reply: &Reply) -> Event {
        Event::Call {
            step: call.step.to_owned(),
            agent: call.agent,
            model: reply.model.clone(),
            prompt: reply.rendered.clone(),
            output: reply.text.clone(),
            thought: reply.thought.clone(),
            finish: reply.finish,
            prompt_tokens: reply.usage.prompt_tokens,
            cached_tokens: reply.usage.cached_tokens,
            diverged: reply.diverged,
            output_tokens: reply.usage.output_tokens,
            milliseconds: Duration::from_secs_f64(reply.usage.seconds).as_millis() as u64,
        }
    }
}

/// Endings of the replies to one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Endings {
    pub calls: usize,
    /// Free text that reached its limit.
    pub length: usize,
    /// Formatted replies that were closed because their room ran out.
    pub closed_early: usize,
    /// Free text and formatted replies that were ended because they repeated themselves.
    pub loops: usize,
}

impl Endings {
    /// Replies that the model did not end by itself.
    pub fn cut(&self) -> usize {
        self.length + self.closed_early + self.loops
    }

    fn count(&mut self, finish: Finish) {
        self.calls += 1;
        match finish {
            Finish::Stop => {}
            Finish::Length => self.length += 1,
            Finish::ClosedEarly => self.closed_early += 1,
            Finish::Repetition | Finish::LoopClosed => self.loops += 1,
        }
    }
}

/// The destination of events.
#[derive(Default)]
pub struct Trace {
    out: Option<Mutex<Box<dyn Write + Send>>>,
    usage: Mutex<Usage>,
    fallbacks: AtomicUsize,
    endings: Mutex<BTreeMap<String, Endings>>,
    events: Mutex<Option<Vec<Event>>>,
}

impl Trace {
    /// A trace that only sums the cost of calls and counts fallbacks.
    pub fn off() -> Trace {
        Trace::default()
    }

    /// A trace that writes lines of JSON.
    pub fn to(out: impl Write + Send + 'static) -> Trace {
        Trace { out: Some(Mutex::new(Box::new(out))), ..Trace::default() }
    }

    /// A trace that is kept in memory.
    pub fn kept() -> Trace {
        Trace::off().keeping()
    }

    /// As above, also kept in memory.
    #[must_use]
    pub fn keeping(self) -> Trace {
        Trace { events: Mutex::new(Some(Vec::new())), ..self }
    }

    /// The events kept.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.events).clone().unwrap_or_default()
    }

    /// The total cost of all calls so far.
    pub fn usage(&self) -> Usage {
        *lock(&self.usage)
    }

    /// The number of fallbacks so far.
    pub fn fallbacks(&self) -> usize {
        self.fallbacks.load(Ordering::Relaxed)
    }

    /// Endings of the replies so far, by step.
    pub fn endings(&self) -> BTreeMap<String, Endings> {
        lock(&self.endings).clone()
    }

    /// Records the cost of a call.
    pub(crate) fn add(&self, usage: Usage) {
        *lock(&self.usage) += usage;
    }

    /// Records the costs and events that another trace has kept.
    ///
    /// # Errors
    /// If a line cannot be written.
    pub(crate) fn absorb(&self, other: &Trace) -> Result<()> {
        self.add(other.usage());
        other.events().into_iter().try_for_each(|event| self.record(event))
    }

    /// Records an event.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub(crate) fn record(&self, event: Event) -> Result<()> {
        match &event {
            Event::Fallback { .. } => drop(self.fallbacks.fetch_add(1, Ordering::Relaxed)),
            Event::Call { step, finish, .. } => lock(&self.endings).entry(step.clone()).or_default().count(*finish),
            _ => {}
        }
        if let Some(out) = &self.out {
            let line = serde_json::to_string(&event).map_err(|error| MemoryError::Trace(error.into()))?;
            let mut out = lock(out);
            writeln!(out, "{line}").and_then(|()| out.flush()).map_err(MemoryError::Trace)?;
        }
        if let Some(events) = lock(&self.events).as_mut() {
            events.push(event);
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
