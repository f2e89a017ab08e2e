//! A caller that replays a script and records what it was asked, so that methods are tested without a model.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::{
    Agent, BoxFuture, Call, CallError, Caller, Embedder, Embedding, Finish, Heads, ModelInfo, Piece, Reply, Scorer,
    ScriptedScorer, TenantId, TokenLogprob, Tokens, ToolCall, Usage,
};

/// Replays scripted answers by step name. Its tokens are words and single punctuation marks.
///
/// The last answer of a step is repeated when the script runs out; a step without any answer fails.
#[derive(Debug)]
pub struct Scripted {
    context_tokens: usize,
    model: &'static str,
    scorer: Option<ScriptedScorer>,
    adapters: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug, Clone)]
struct Answer {
    text: String,
    finish: Finish,
    thought: Option<String>,
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Default)]
struct State {
    answers: HashMap<&'static str, VecDeque<Result<Answer, CallError>>>,
    seen: Vec<Call>,
}

impl Scripted {
    /// A script with no answers yet, for a model with this context.
    pub fn new(context_tokens: usize) -> Self {
        Scripted { context_tokens, model: "scripted", scorer: None, adapters: Vec::new(), state: Mutex::default() }
    }

    /// Names its model, which is `scripted` otherwise.
    #[must_use]
    pub fn named(self, model: &'static str) -> Self {
        Scripted { model, ..self }
    }

    /// Adds the next answer of `step`, which ends by itself.
    #[must_use]
    pub fn answer(self, step: &'static str, text: impl Into<String>) -> Self {
        self.ended(step, text, Finish::Stop)
    }

    /// Adds the next answer of `step`, which ends like this.
    #[must_use]
    pub fn ended(self, step: &'static str, text: impl Into<String>, finish: Finish) -> Self {
        self.push(step, Ok(Answer { text: text.into(), finish, thought: None, tool_calls: Vec::new() }))
    }

    /// Adds the next answer of `step`, with a thought before it if the call asks for one.
    #[must_use]
    pub fn thought(self, step: &'static str, thought: impl Into<String>, text: impl Into<String>) -> Self {
        let (text, thought) = (text.into(), Some(thought.into()));
        self.push(step, Ok(Answer { text, finish: Finish::Stop, thought, tool_calls: Vec::new() }))
    }

    /// Adds the next answer of `step`: a text and calls of tools, by their names with JSON arguments. Their ids are
    /// `call-0` and so on.
    #[must_use]
    pub fn tools(self, step: &'static str, text: impl Into<String>, calls: &[(&str, &str)]) -> Self {
        let call = |(number, (name, arguments)): (usize, &(&str, &str))| ToolCall {
            id: format!("call-{number}"),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        let tool_calls = calls.iter().enumerate().map(call).collect();
        self.push(step, Ok(Answer { text: text.into(), finish: Finish::Stop, thought: None, tool_calls }))
    }

    /// Lets this score texts.
    #[must_use]
    pub fn scored(self, scorer: ScriptedScorer) -> Self {
        Scripted { scorer: Some(scorer), ..self }
    }

    /// Lets calls choose an adapter of this name.
    #[must_use]
    pub fn with_adapter(mut self, name: impl Into<String>) -> Self {
        self.adapters.push(name.into());
        self
    }

    /// Makes the next call of `step` fail.
    #[must_use]
    pub fn fail(self, step: &'static str, error: CallError) -> Self {
        self.push(step, Err(error))
    }

    fn push(self, step: &'static str, answer: Result<Answer, CallError>) -> Self {
        self.lock().answers.entry(step).or_default().push_back(answer);
        self
    }

    /// Every call so far, in order of arrival.
    pub fn seen(&self) -> Vec<Call> {
        self.lock().seen.clone()
    }

    /// The steps called so far, in order of arrival.
    pub fn steps(&self) -> Vec<&'static str> {
        self.lock().seen.iter().map(|call| call.step).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, call: &Call) -> Result<Reply, CallError> {
        let prompt_tokens = self.prompt_tokens(call);
        let max_output_tokens = call.limits.reply_tokens();
        if prompt_tokens + max_output_tokens > self.context_tokens {
            let context_tokens = self.context_tokens;
            return Err(CallError::TooLong { step: call.step, prompt_tokens, max_output_tokens, context_tokens });
        }
        let mut state = self.lock();
        state.seen.push(call.clone());
        let Some(answers) = state.answers.get_mut(call.step) else {
            return Err(CallError::Failed { step: call.step, reason: "the script has no answer for it".into() });
        };
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let Answer { mut text, finish, thought, tool_calls } = answer.unwrap_or(Err(CallError::Closed))?;
        let thought = thought.filter(|_| call.limits.thinking_tokens > 0);
        let tool_calls = if call.tools.is_some() { tool_calls } else { Vec::new() };
        // The one that is complete first; of several the longest.
        let found = |stop: &String| text.find(stop).map(|start| (start + stop.len(), start));
        let stop = call.stop.iter().filter_map(|stop| Some((found(stop)?, stop))).min();
        text.truncate(stop.map_or(text.len(), |((_, start), _)| start));
        let logprobs = call.logprobs.map_or_else(Vec::new, |top| certain(&text, top));
        if let Some(on_text) = &call.on_text {
            if let Some(thought) = &thought {
                on_text.send_piece(Piece::Thought(thought));
            }
            if !text.is_empty() {
                on_text.send_piece(Piece::Text(&text, &logprobs));
            }
            for ToolCall { name, arguments, .. } in &tool_calls {
                on_text.send_piece(Piece::ToolCall(name));
                on_text.send_piece(Piece::Arguments(arguments));
            }
        }
        let written = [&text].into_iter().chain(&thought).chain(tool_calls.iter().map(|call| &call.arguments));
        let output_tokens = written.map(|text| words(text).len()).sum();
        let usage = Usage { calls: 1, prompt_tokens, cached_tokens: 0, output_tokens, seconds: 0.0 };
        Ok(Reply {
            text,
            thought,
            tool_calls,
            finish,
            stopped_by: stop.map(|(_, stop)| stop.clone()),
            end_token: None,
            usage,
            diverged: None,
            logprobs,
            rendered: render(call),
            model: self.model.into(),
        })
    }
}

impl Caller for Scripted {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move { self.next(&call) })
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn models(&self) -> &dyn ModelInfo {
        self
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        self.scorer.as_ref().map(|scorer| scorer as &dyn Scorer)
    }
}

impl Tokens for Scripted {
    fn context_tokens(&self, _: Agent) -> usize {
        self.context_tokens
    }

    fn token_spans(&self, _: Agent, text: &str) -> Vec<Range<usize>> {
        words(text)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        words(&render(call)).len()
    }
}

impl ModelInfo for Scripted {
    fn model(&self, _: Agent) -> &str {
        self.model
    }

    fn adapters(&self, _: Agent) -> Vec<String> {
        self.adapters.clone()
    }
}

/// The tokens of a text of which every one was certain.
fn certain(text: &str, top: usize) -> Vec<TokenLogprob> {
    let token = |span: Range<usize>| {
        let bytes = text.as_bytes()[span].to_vec();
        TokenLogprob { id: None, top: vec![(bytes.clone(), 0.0); top.min(1)], bytes, logprob: 0.0, drawn: true }
    };
    words(text).into_iter().map(token).collect()
}

fn render(call: &Call) -> String {
    if let Some(text) = call.prompt.as_bare() {
        return text.to_owned() + call.prompt.suffix().unwrap_or_default();
    }
    let turn = |message: crate::Message| ["<", message.role.as_str(), ">\n", &message.content, "\n"].concat();
    let tools = call.prompt.tools().iter().map(|tool| tool.definition().to_string());
    let start = call.prompt.reply_start().to_owned();
    tools.chain(call.prompt.messages().into_iter().map(turn)).chain([start]).collect()
}

/// Splits into words and single other characters; white space belongs to no token.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut in_word = false;
    for (start, c) in text.char_indices() {
        let end = start + c.len_utf8();
        match spans.last_mut() {
            Some(last) if in_word && c.is_alphanumeric() => last.end = end,
            _ if c.is_whitespace() => {}
            _ => spans.push(start..end),
        }
        in_word = c.is_alphanumeric();
    }
    spans
}

/// Embeds a text as the normalised counts of its letters: alike texts get alike vectors, without a model.
#[derive(Debug, Default)]
pub struct ScriptedEmbedder;

impl Embedder for ScriptedEmbedder {
    fn encode_for(
        &self,
        _: TenantId,
        texts: Vec<String>,
        _: Heads,
    ) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        let embedding = |text: &String| Embedding { dense: letter_counts(text), sparse: None, colbert: None };
        Box::pin(async move { Ok(texts.iter().map(embedding).collect()) })
    }

    fn dims(&self) -> usize {
        26
    }

    fn window_tokens(&self) -> usize {
        64
    }

    fn special_tokens(&self) -> usize {
        2
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        words(text)
    }

    fn name(&self) -> &'static str {
        "letters"
    }
}

fn letter_counts(text: &str) -> Vec<f32> {
    let mut counts = [0f32; 26];
    counts[0] = 1e-3; // never the zero vector
    for letter in text.bytes().filter(u8::is_ascii_alphabetic) {
        counts[usize::from(letter.to_ascii_lowercase() - b'a')] += 1.0;
    }
    let norm = counts.iter().map(|x| x * x).sum::<f32>().sqrt();
    counts.iter().map(|x| x / norm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_and_marks() {
        let spans = words("It's 5 o'clock — é!");
        let tokens: Vec<&str> = spans.into_iter().map(|span| &"It's 5 o'clock — é!"[span]).collect();
        assert_eq!(tokens, ["It", "'", "s", "5", "o", "'", "clock", "—", "é", "!"]);
    }
}
