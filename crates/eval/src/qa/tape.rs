//! The tape of a run: every call with its reply (`transcript.jsonl`), and token counts, token spans and vectors
//! (`tape.jsonl`).
//!
//! A reply is written to the tape before it is returned, so that a killed run resumes without repeating a call, and a run
//! can be replayed without a model.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use calls::{Agent, Finish, Reply, Score, Scored, TokenLogprob, Usage};
use memory::Profile;
use serde::{Deserialize, Serialize};

use super::lines::{self, Appender};
use super::sampled::Sampled;
use super::tape_key::short;
use crate::{Result, StepEndings};

/// The scope of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// The model's name on the command line.
    pub model: String,
    pub method: String,
    pub case: String,
    /// `None` during the preparation of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// A line of the transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    #[serde(flatten)]
    pub scope: Scope,
    pub step: String,
    #[serde(rename = "role")]
    pub agent: Agent,
    /// The model that answered.
    pub answered_by: String,
    /// Digest of all inputs of the reply.
    pub key: String,
    /// Digest of the parts of the prompt that are equal in every call of the step.
    pub instructions: String,
    /// The prompt as the model read it.
    pub prompt: String,
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    pub finish: Finish,
    #[serde(flatten)]
    pub usage: Usage,
    /// Messages, tokens and log-probabilities, if the plan asks for rollouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// Log-probabilities of the reply, if the method asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<LikelyToken>,
}

/// A token of a reply with its log-probability, and the likely ones in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LikelyToken {
    id: Option<u32>,
    bytes: Vec<u8>,
    logprob: f32,
    /// Tapes of older versions do not have it; no method reads it.
    #[serde(default)]
    drawn: bool,
    top: Vec<(Vec<u8>, f32)>,
}

impl From<&TokenLogprob> for LikelyToken {
    fn from(token: &TokenLogprob) -> LikelyToken {
        let TokenLogprob { id, bytes, logprob, drawn, top } = token.clone();
        LikelyToken { id, bytes, logprob, drawn, top }
    }
}

impl From<LikelyToken> for TokenLogprob {
    fn from(LikelyToken { id, bytes, logprob, drawn, top }: LikelyToken) -> TokenLogprob {
        TokenLogprob { id, bytes, logprob, drawn, top }
    }
}

/// A line of the tape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fact {
    Machine(Box<Facts>),
    /// Starts (each from the one before) and lengths of tokens.
    Spans(String, Vec<i64>),
    Count(String, usize),
    /// Bits of the numbers, in hexadecimal.
    Vector(String, String),
    /// Scores of continuations (bits of the log-probability, tokens, bits of the end's log-probability) and their cost.
    Scores(String, Vec<(u64, usize, Option<u64>)>, Usage),
}

/// The constants of a loaded model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub model: String,
    pub context_tokens: HashMap<Agent, usize>,
    pub models: HashMap<Agent, String>,
    pub embedder: String,
    pub dims: usize,
    pub window_tokens: usize,
    /// Whether it scores given texts.
    #[serde(default)]
    pub scores: bool,
    /// The sizes of models, where they are known.
    #[serde(default)]
    pub parameters: HashMap<Agent, u64>,
    /// The models without adapters, where an agent runs with one.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    pub base_models: HashMap<Agent, String>,
    /// The adapters that calls may choose.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    pub adapters: HashMap<Agent, Vec<String>>,
}

/// The recorded replies, counts and vectors of a run.
#[derive(Debug, Default)]
pub struct Tape {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    transcript: Option<Appender>,
    tape: Option<Appender>,
    replies: HashMap<String, Reply>,
    usage: HashMap<Scope, Usage>,
    endings: HashMap<Scope, StepEndings>,
    instructions: BTreeSet<(String, String)>,
    machines: HashMap<String, Facts>,
    spans: HashMap<String, Vec<i64>>,
    counts: HashMap<String, usize>,
    vectors: HashMap<String, Vec<f32>>,
    scores: HashMap<String, Scored>,
}

impl Tape {
    /// Opens the tape of a run folder for reading and appending.
    ///
    /// # Errors
    /// [`crate::Error::Record`] for an invalid line, unless it is the last one and was cut off by the end of its
    /// process.
    pub fn open(folder: &Path) -> Result<Tape> {
        let tape = Tape::read(folder)?;
        tape.lock().transcript = Some(Appender::open(folder.join(TRANSCRIPT))?);
        tape.lock().tape = Some(Appender::open(folder.join(TAPE))?);
        Ok(tape)
    }

    /// Reads the tape of a run folder.
    ///
    /// # Errors
    /// As [`Tape::open`].
    pub fn read(folder: &Path) -> Result<Tape> {
        let mut state = State::default();
        for record in lines::read::<CallRecord>(&folder.join(TRANSCRIPT))? {
            state.learn(record);
        }
        for fact in lines::read::<Fact>(&folder.join(TAPE))? {
            match fact {
                Fact::Machine(facts) => drop(state.machines.insert(facts.model.clone(), *facts)),
                Fact::Spans(key, spans) => drop(state.spans.insert(key, spans)),
                Fact::Count(key, count) => drop(state.counts.insert(key, count)),
                Fact::Vector(key, bits) => drop(state.vectors.insert(key, from_bits(&bits))),
                Fact::Scores(key, scores, usage) => {
                    state.scores.insert(key, Scored { scores: scores_of(&scores), usage });
                }
            }
        }
        Ok(Tape { state: Mutex::new(state) })
    }

    /// Usage of the calls of a scope.
    pub fn usage(&self, scope: &Scope) -> Usage {
        self.lock().usage.get(scope).copied().unwrap_or_default()
    }

    /// How the replies to calls of a scope ended.
    pub fn endings(&self, scope: &Scope) -> StepEndings {
        self.lock().endings.get(scope).cloned().unwrap_or_default()
    }

    /// The steps with the digests of their instructions, in order.
    pub fn instructions(&self) -> Vec<(String, String)> {
        self.lock().instructions.iter().cloned().collect()
    }

    pub(super) fn machine(&self, model: &str) -> Option<Facts> {
        self.lock().machines.get(model).cloned()
    }

    /// The profile of each model's researcher, unless `named` is that of all agents.
    pub(super) fn profiles(&self, named: Option<Profile>) -> BTreeMap<String, Profile> {
        let of =
            |facts: &Facts| named.unwrap_or_else(|| Profile::of(facts.parameters.get(&Agent::Researcher).copied()));
        self.lock().machines.iter().map(|(model, facts)| (model.clone(), of(facts))).collect()
    }

    pub(super) fn put_machine(&self, facts: Facts) -> Result<()> {
        let mut state = self.lock();
        if state.machines.get(&facts.model) == Some(&facts) {
            return Ok(());
        }
        state.write(&Fact::Machine(Box::new(facts.clone())))?;
        state.machines.insert(facts.model.clone(), facts);
        Ok(())
    }

    pub(super) fn reply(&self, key: &str) -> Option<Reply> {
        self.lock().replies.get(key).cloned()
    }

    pub(super) fn put_reply(&self, record: CallRecord) -> Result<()> {
        let mut state = self.lock();
        if let Some(file) = &mut state.transcript {
            file.append(&record)?;
        }
        state.learn(record);
        Ok(())
    }

    /// The spans of a text's tokens; `ask` computes them if they are not recorded.
    pub(super) fn spans(&self, key: &[&str], ask: impl FnOnce() -> Vec<Range<usize>>) -> Vec<Range<usize>> {
        let key = short(key);
        if let Some(flat) = self.lock().spans.get(&key) {
            return unflattened(flat);
        }
        let spans = ask();
        let flat = flattened(&spans);
        let mut state = self.lock();
        // A failure to write the tape is reported at the next reply.
        let _ = state.write(&Fact::Spans(key.clone(), flat.clone()));
        state.spans.insert(key, flat);
        spans
    }

    /// A number of tokens.
    pub(super) fn count(&self, key: &[&str], ask: impl FnOnce() -> usize) -> usize {
        let key = short(key);
        if let Some(count) = self.lock().counts.get(&key) {
            return *count;
        }
        let count = ask();
        let mut state = self.lock();
        let _ = state.write(&Fact::Count(key.clone(), count));
        state.counts.insert(key, count);
        count
    }

    pub(super) fn vector(&self, key: &[&str]) -> Option<Vec<f32>> {
        self.lock().vectors.get(&short(key)).cloned()
    }

    pub(super) fn put_vector(&self, key: &[&str], vector: &[f32]) -> Result<()> {
        let bits = vector.iter().map(|number| format!("{:08x}", number.to_bits())).collect::<Vec<_>>().concat();
        let mut state = self.lock();
        state.write(&Fact::Vector(short(key), bits))?;
        state.vectors.insert(short(key), vector.to_vec());
        Ok(())
    }

    pub(super) fn scores(&self, key: &str) -> Option<Scored> {
        self.lock().scores.get(key).cloned()
    }

    pub(super) fn put_scores(&self, key: &str, scored: &Scored) -> Result<()> {
        let bits = |score: &Score| (score.logprob.to_bits(), score.tokens, score.end_logprob.map(f64::to_bits));
        let mut state = self.lock();
        state.write(&Fact::Scores(key.to_owned(), scored.scores.iter().map(bits).collect(), scored.usage))?;
        state.scores.insert(key.to_owned(), scored.clone());
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn learn(&mut self, record: CallRecord) {
        let steps = self.endings.entry(record.scope.clone()).or_default();
        steps.entry(record.step.clone()).or_default().count(record.finish);
        *self.usage.entry(record.scope).or_default() += record.usage;
        self.instructions.insert((record.step, record.instructions));
        let CallRecord { output, thought, finish, usage, prompt, answered_by, key, logprobs, .. } = record;
        let reply = Reply {
            text: output,
            thought,
            tool_calls: Vec::new(),
            finish,
            stopped_by: None,
            end_token: None,
            usage,
            diverged: None,
            logprobs: logprobs.into_iter().map(TokenLogprob::from).collect(),
            rendered: prompt,
            model: answered_by,
        };
        self.replies.entry(key).or_insert(reply);
    }

    fn write(&mut self, fact: &Fact) -> Result<()> {
        self.tape.as_mut().map_or(Ok(()), |file| file.append(fact))
    }
}

pub(super) const TRANSCRIPT: &str = "transcript.jsonl";
pub(super) const TAPE: &str = "tape.jsonl";

fn flattened(spans: &[Range<usize>]) -> Vec<i64> {
    let mut before = 0;
    let mut flat = Vec::with_capacity(spans.len() * 2);
    for span in spans {
        let start = i64::try_from(span.start).unwrap_or(i64::MAX);
        flat.push(start - before);
        flat.push(i64::try_from(span.len()).unwrap_or(i64::MAX));
        before = start;
    }
    flat
}

fn unflattened(flat: &[i64]) -> Vec<Range<usize>> {
    let mut start = 0;
    let span = |pair: &[i64]| {
        start += pair[0];
        let start = usize::try_from(start).unwrap_or(0);
        start..start + usize::try_from(pair[1]).unwrap_or(0)
    };
    flat.chunks_exact(2).map(span).collect()
}

fn scores_of(bits: &[(u64, usize, Option<u64>)]) -> Vec<Score> {
    let score = |(logprob, tokens, end): &(u64, usize, Option<u64>)| Score {
        logprob: f64::from_bits(*logprob),
        tokens: *tokens,
        end_logprob: end.map(f64::from_bits),
    };
    bits.iter().map(score).collect()
}

fn from_bits(bits: &str) -> Vec<f32> {
    let number = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().map(f32::from_bits);
    bits.as_bytes().chunks_exact(8).filter_map(number).collect()
}
