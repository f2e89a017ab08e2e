//! The calls of one run of a method, and the one place where replies are checked.

use calls::{Agent, Call, CallError, Finish, Limits, OutputFormat, Prompt, Reply, Sampling, Stability};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::core::error::{MemoryError, Result};
use crate::core::profile::Profile;
use crate::core::trace::Event;

pub use crate::core::method::Session;

/// One request to an agent, before it has an output format.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub agent: Agent,
    pub step: &'static str,
    pub prompt: Prompt,
    /// Tokens of a thought before the reply; 0 for none.
    pub thinking_tokens: usize,
    pub max_output_tokens: usize,
    /// Added to the seed, so that the same question in another round may get another answer.
    pub draw: u64,
}

impl Ask {
    /// Tokens that the reply may have in all, its thought included.
    pub fn reply_tokens(&self) -> usize {
        self.thinking_tokens + self.max_output_tokens
    }
}

impl Session<'_> {
    /// Streams text of the answer, if it is streamed.
    pub(crate) fn stream(&self, text: &str) {
        if let Some(on_text) = &self.on_text {
            on_text.send(text);
        }
    }

    /// A call with this session's sampling.
    pub(crate) fn call(&self, ask: Ask, output_format: OutputFormat) -> Call {
        let call = Call::new(ask.agent, ask.step, ask.prompt, ask.max_output_tokens);
        Call {
            workflow: self.workflow,
            tenant: self.tenant,
            output_format,
            limits: Limits { thinking_tokens: ask.thinking_tokens, stop_loops: true, ..call.limits },
            sampling: Sampling::at(self.settings.temperature, self.settings.seed.wrapping_add(ask.draw)),
            priority: self.priority,
            ..call
        }
    }

    /// Makes a call and records it. A cut reply is requested once more: with twice the room if its room ran out,
    /// with another seed if it repeated itself. If that one is cut too, the trace records it, as does
    /// [`calls::Finish::is_cut`] of the result. A reply that an endpoint gave in another form than its call's is requested once
    /// more with another seed; if that one has another form too, it is an error. Text that was streamed already is not
    /// requested again.
    pub(crate) async fn send(&self, mut call: Call) -> Result<Reply> {
        let mut reply = self.attempt(call.clone()).await;
        if matches!(reply, Err(MemoryError::Call(CallError::OutOfForm { .. }))) && call.on_text.is_none() {
            draw_anew(&mut call);
            reply = self.attempt(call.clone()).await;
        }
        let Some(finish) = cut(&reply) else { return reply };
        let mut attempts = "not asked for again";
        if call.on_text.is_none() && self.retry_with_room(&mut call, finish) {
            attempts = "asked for twice";
            match self.attempt(call.clone()).await {
                // The prompt was counted too low: there is no more room.
                Err(MemoryError::Call(CallError::TooLong { .. })) => {}
                again => reply = again,
            }
        }
        if let Some(finish) = cut(&reply) {
            let reason = format!("the reply was cut, and {attempts}: {}", how_it_ended(finish, &call));
            self.trace.record(Event::Fallback { step: call.step.to_owned(), reason })?;
        }
        reply
    }

    /// Changes a call whose reply was cut, so that the next one may be complete; false if the context has no more room.
    fn retry_with_room(&self, call: &mut Call, finish: Finish) -> bool {
        if finish.is_loop() {
            draw_anew(call);
            return true;
        }
        let used = self.caller.tokens().prompt_tokens(call).saturating_add(call.limits.thinking_tokens);
        let room = self.context(call.agent).saturating_sub(used);
        let (before, most) = (call.limits.max_output_tokens, &mut call.limits.max_output_tokens);
        *most = (2 * before).min(room).max(before);
        *most > before
    }

    /// Makes a call once and records it.
    async fn attempt(&self, call: Call) -> Result<Reply> {
        let reply = self.caller.call(call.clone()).await?;
        self.trace.add(reply.usage);
        self.trace.record(Event::call(&call, &reply))?;
        Ok(reply)
    }

    /// Requests free text. The trace records whether it is cut at the second attempt too.
    pub(crate) async fn text(&self, ask: Ask) -> Result<String> {
        Ok(self.send(self.call(ask, OutputFormat::Text)).await?.text)
    }

    /// Requests JSON. An invalid reply is requested once more with the error; after that it is
    /// `None` and the trace records why. So is one that is cut at the second attempt too: the model did not decide its
    /// end. Failures of the engine are errors.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        ask: Ask,
        schema: Value,
        check: impl Fn(&T) -> std::result::Result<(), String>,
    ) -> Result<Option<T>> {
        let reply = self.json_with_ending(ask, schema, check).await?;
        Ok(reply.filter(|(_, finish)| !finish.is_cut()).map(|(value, _)| value))
    }

    /// As above, with how the reply ended: one that is cut at the second attempt too is returned as far as it is JSON. The
    /// caller decides which part of it the model had completed.
    pub(crate) async fn json_with_ending<T: DeserializeOwned>(
        &self,
        ask: Ask,
        schema: Value,
        check: impl Fn(&T) -> std::result::Result<(), String>,
    ) -> Result<Option<(T, Finish)>> {
        let step = ask.step;
        let mut call = self.call(ask, OutputFormat::Json(schema));
        let mut complaint = String::new();
        for _ in 0..2 {
            let reply = match self.send(call.clone()).await {
                // A second attempt may be too long where the first was not.
                Err(MemoryError::Call(CallError::TooLong { .. })) if !complaint.is_empty() => break,
                // The trace has recorded it already.
                Err(MemoryError::Call(CallError::CutOff { .. })) => return Ok(None),
                reply => reply?,
            };
            match parse(&reply.text).and_then(|value| check(&value).map(|()| value)) {
                Ok(value) => return Ok(Some((value, reply.finish))),
                Err(_) if reply.finish.is_cut() => return Ok(None),
                Err(reason) => {
                    let request = format!("That answer cannot be used: {reason}. Answer again in the form asked for.");
                    call.prompt = call.prompt.assistant(reply.text).user(Stability::Volatile, request);
                    call.sampling.seed = call.sampling.seed.wrapping_add(1);
                    complaint = reason;
                }
            }
        }
        self.trace.record(Event::Fallback { step: step.to_owned(), reason: complaint })?;
        Ok(None)
    }

    /// As [`Session::json`] for optional calls: a call that is too long is `None` too.
    pub(crate) async fn json_if_it_fits<T: DeserializeOwned>(
        &self,
        ask: Ask,
        schema: Value,
        check: impl Fn(&T) -> std::result::Result<(), String>,
    ) -> Result<Option<T>> {
        let step = ask.step;
        self.none_if_too_long(step, self.json(ask, schema, check).await)
    }

    /// The result of an optional call: none if the call is too long, which the trace records.
    pub(crate) fn none_if_too_long<T>(&self, step: &str, done: Result<Option<T>>) -> Result<Option<T>> {
        match done {
            Err(MemoryError::Call(error @ CallError::TooLong { .. })) => {
                self.trace.record(Event::Fallback { step: step.to_owned(), reason: error.to_string() })?;
                Ok(None)
            }
            done => done,
        }
    }

    /// Tokens that the model of an agent may read and write together.
    pub(crate) fn context(&self, agent: Agent) -> usize {
        self.caller.tokens().context_tokens(agent)
    }

    /// The profile of an agent.
    pub fn profile(&self, agent: Agent) -> Profile {
        self.settings.profile.unwrap_or_else(|| Profile::of(self.caller.models().parameters(agent)))
    }

    /// Tokens of a prompt, as the model reads it.
    pub(crate) fn prompt_tokens(&self, ask: &Ask) -> usize {
        self.caller.tokens().prompt_tokens(&self.call(ask.clone(), OutputFormat::Text))
    }

    /// Tokens of an agent's reply: `most`, fewer where the context is small.
    pub(crate) fn output_tokens(&self, agent: Agent, most: usize) -> usize {
        most.min(self.context(agent) / 16).max(MIN_OUTPUT_TOKENS)
    }

    /// The same for a reply whose form has many or long parts: those that the prompt states have room in a context of 8,192.
    pub(crate) fn long_output_tokens(&self, agent: Agent, most: usize) -> usize {
        most.min(self.context(agent) / 4).max(MIN_OUTPUT_TOKENS)
    }

    /// Tokens of an agent's thought before its reply: fewer where the context is small, and none in the small profile,
    /// whose models fill a thought with copies of the prompt.
    pub(crate) fn thinking_tokens(&self, agent: Agent) -> usize {
        let most = MAX_THINKING_TOKENS.min(self.context(agent) / 16);
        if self.profile(agent) == Profile::Paper && most >= MIN_THINKING_TOKENS { most } else { 0 }
    }
}

/// Tokens of a thought (GAM's released code: 2,048 for thought and reply together).
const MAX_THINKING_TOKENS: usize = 1024;

/// The minimum tokens of a thought; in a context without room for them there is none.
const MIN_THINKING_TOKENS: usize = 64;

/// The minimum temperature at which a reply that repeated itself or had another form is sampled again.
const ANEW_TEMPERATURE: f32 = 0.5;

/// Added to the seed of such a reply.
const ANEW_DRAW: u64 = 1 << 32;

/// The minimum tokens of an agent's answer, which its format needs.
const MIN_OUTPUT_TOKENS: usize = 128;

/// Changes the sampling of a call, so that the same prompt has another reply.
fn draw_anew(call: &mut Call) {
    call.sampling.temperature = call.sampling.temperature.max(ANEW_TEMPERATURE);
    call.sampling.seed = call.sampling.seed.wrapping_add(ANEW_DRAW);
}

/// How a reply was cut, if it was cut.
fn cut(reply: &Result<Reply>) -> Option<Finish> {
    match reply {
        Ok(reply) => Some(reply.finish).filter(|finish| finish.is_cut()),
        Err(MemoryError::Call(CallError::CutOff { .. })) => Some(Finish::ClosedEarly),
        Err(_) => None,
    }
}

fn how_it_ended(finish: Finish, call: &Call) -> String {
    let limit = call.limits.max_output_tokens;
    match finish {
        Finish::Stop => "it is whole".to_owned(),
        Finish::Length => format!("it reached its limit of {limit} tokens"),
        Finish::ClosedEarly => format!("its form was not complete within {limit} tokens"),
        Finish::Repetition | Finish::LoopClosed => "it repeated itself".to_owned(),
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> std::result::Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not the JSON that was asked for ({error})"))
}
