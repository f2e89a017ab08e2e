//! One reply in progress: which tokens may come next, which were sampled, and when it ends.

mod advance;
mod ahead;

use std::sync::Arc;
use std::time::{Duration, Instant};

use calls::{CallError, Finish, Limits, OnText, Piece, Reply, TokenLogprob, Usage};
use tokio::sync::oneshot;

pub(crate) use advance::{Advance, StepRows};
use ahead::Prepared;

use crate::adjustments::Adjustments;
use crate::grammar::{Acceptance, Grammar};
use crate::logits::Logits;
use crate::logprob::Row;
use crate::prompt_lookup::PromptLookup;
use crate::rendered::Rendered;
use crate::repetition::RepetitionGuard;
use crate::sample::Sampler;
use crate::stop::Stops;
use crate::submission::Submission;
use crate::text::TextStream;
use crate::thought::Thought;
use crate::vocabulary::Vocabulary;

/// What follows in a reply.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Token(u32),
    /// The last token of the thought: draft tokens computed after it are discarded.
    Border(u32),
    End(Finish),
}

/// The next token of a reply.
#[derive(Clone, Copy)]
struct Chosen {
    token: u32,
    /// It was drawn from several tokens that were allowed.
    drawn: bool,
}

/// A reply in progress.
pub(crate) struct Generation {
    pub step: &'static str,
    pub reply: oneshot::Sender<Result<Reply, CallError>>,
    /// The index of the adapter that it runs with.
    pub adapter: Option<usize>,
    /// How long its last tokens took on a thread for output formats.
    pub took: Duration,
    limits: Limits,
    grammar: Option<Grammar>,
    sampler: Sampler,
    adjustments: Adjustments,
    on_text: Option<OnText>,
    stops: Stops,
    /// Number of alternatives whose log-probabilities are returned; `None` returns no log-probabilities.
    top_logprobs: Option<usize>,
    logprobs: Vec<TokenLogprob>,
    /// How many of them were streamed with their text.
    streamed_logprobs: usize,
    rendered: Arc<Rendered>,
    submitted: Instant,
    /// Prompt and output tokens.
    lookup: PromptLookup,
    written: Vec<u32>,
    text: TextStream,
    /// The remaining tokens of a reply that is being closed, last token first.
    closing: Option<Vec<u32>>,
    repetition: RepetitionGuard,
    /// True once the output is looping.
    loops: bool,
    thought: Option<Thought>,
    /// The token that was drawn to end the reply.
    end_token: Option<u32>,
    prepared: Option<Prepared>,
}

/// Maximum number of drawn tokens that are refused, because no valid reply begins with them, before the reply is closed.
const MAX_REFUSED: usize = 16;

impl Generation {
    pub fn new(submission: Submission) -> Generation {
        Generation {
            step: submission.step,
            reply: submission.reply,
            adapter: submission.adapter,
            took: Duration::ZERO,
            limits: submission.limits,
            grammar: submission.grammar,
            sampler: submission.sampler,
            adjustments: submission.adjustments,
            on_text: submission.on_text,
            stops: submission.stops,
            top_logprobs: submission.logprobs,
            logprobs: Vec::new(),
            streamed_logprobs: 0,
            lookup: PromptLookup::new(submission.rendered.tokens.clone()),
            rendered: submission.rendered,
            submitted: submission.submitted,
            written: Vec::new(),
            text: TextStream::default(),
            closing: None,
            repetition: submission.repetition,
            loops: false,
            thought: submission.thought,
            end_token: None,
            prepared: None,
        }
    }

    /// True if the reply is streamed and has started, perhaps with its thought.
    pub fn is_streaming(&self) -> bool {
        self.on_text.is_some() && self.written_tokens() > 0
    }

    /// True if it has an output format.
    pub fn is_constrained(&self) -> bool {
        self.grammar.is_some()
    }

    /// True if the caller no longer awaits the reply.
    pub fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Tokens of the reply so far, its thought included.
    pub fn written_tokens(&self) -> usize {
        self.thought.as_ref().map_or(0, Thought::written_tokens) + self.written.len()
    }

    /// The thought, while it is in progress.
    fn thinking(&self) -> Option<&Thought> {
        self.thought.as_ref().filter(|thought| thought.is_under_way())
    }

    /// Appends a token to the thought.
    fn think(&mut self, token: u32, vocabulary: &Vocabulary) -> Next {
        self.lookup.push(token);
        self.adjustments.push(token);
        let bytes = vocabulary.tokenizer.bytes(token);
        let crossed = self.thought.as_mut().is_some_and(|thought| thought.push(token, bytes));
        if let (Some(on_text), Some(thought)) = (&self.on_text, &mut self.thought) {
            let piece = thought.piece();
            if !piece.is_empty() {
                on_text.send_piece(Piece::Thought(piece));
            }
        }
        if crossed { Next::Border(token) } else { Next::Token(token) }
    }

    /// Appends the next token if it is known without logits: the grammar allows no other, or the thought or the reply
    /// is being closed.
    ///
    /// # Errors
    /// If the grammar fails, or a reply that loops cannot be closed.
    fn next_known(&mut self, vocabulary: &Vocabulary) -> Result<Option<Next>, String> {
        if let Some(thought) = self.thinking() {
            let known = thought.known().and_then(|known| known.last().copied());
            return Ok(known.map(|token| self.think(token, vocabulary)));
        }
        self.close_loop()?;
        let left = self.limits.max_output_tokens - self.written.len();
        // Log-probabilities need a row of logits for each token: forced ones are drafted instead.
        let Some(grammar) = self.grammar.as_mut().filter(|_| self.top_logprobs.is_none()) else { return Ok(None) };
        let token = if let Some(closing) = &mut self.closing {
            let Some(token) = closing.pop() else { return Ok(Some(Next::End(self.finish_reason()))) };
            grammar.accept(token)?;
            token
        } else {
            // What follows instead of a token that is not accepted is decided with its row.
            let Some(token) = grammar.accept_forced(left)? else { return Ok(None) };
            token
        };
        Ok(Some(self.append(Chosen { token, drawn: false }, vocabulary)))
    }

    /// Switches to the shortest completion if a reply in a format loops, once the grammar leaves a choice.
    fn close_loop(&mut self) -> Result<(), String> {
        let grammar = self.grammar.as_mut().filter(|_| self.loops && self.closing.is_none());
        match grammar.map(Grammar::forced_token).transpose()? {
            Some(None) => self.close(),
            Some(Some(_)) | None => Ok(()),
        }
    }

    /// Selects the next token from `logits`.
    ///
    /// # Errors
    /// If no token is allowed, or the grammar fails.
    fn next(&mut self, mut logits: Logits, vocabulary: &Vocabulary) -> Result<Next, String> {
        if self.thinking().is_some() {
            let token = self.draw(&mut logits, &[], vocabulary)?.token;
            return Ok(self.think(token, vocabulary));
        }
        let row = match (&logits, self.top_logprobs) {
            (Logits::All(logits), Some(top)) => Some(Row::read(logits, top)),
            _ => None,
        };
        // The draw changes the row; log-probabilities are those of the model.
        let unchanged = match (&logits, &row) {
            (Logits::All(logits), Some(_)) => Some(logits.clone()),
            _ => None,
        };
        let chosen = if self.grammar.is_some() {
            self.next_constrained(&mut logits, vocabulary)?
        } else {
            let chosen = self.draw(&mut logits, &[], vocabulary)?;
            let is_end = vocabulary.eos.contains(&chosen.token);
            self.end_token = is_end.then_some(chosen.token);
            (!is_end).then_some(chosen)
        };
        let Some(chosen) = chosen else { return Ok(Next::End(self.finish_reason())) };
        if let (Some(row), Some(logits)) = (row, unchanged) {
            let Chosen { token, drawn } = chosen;
            self.logprobs.push(row.of(token, logits[token as usize], drawn, &vocabulary.tokenizer));
        }
        Ok(self.append(chosen, vocabulary))
    }

    /// Appends a token, after which the reply may end.
    fn append(&mut self, chosen: Chosen, vocabulary: &Vocabulary) -> Next {
        let stopped = self.write(chosen, vocabulary);
        if stopped || self.grammar.as_ref().is_some_and(Grammar::is_complete) {
            return Next::End(self.finish_reason());
        }
        let full = self.written.len() == self.limits.max_output_tokens;
        match &self.grammar {
            None if self.loops => Next::End(Finish::Repetition),
            None if full => Next::End(Finish::Length),
            Some(_) if full => Next::End(self.closed_reason()),
            _ => Next::Token(chosen.token),
        }
    }

    /// Writes a token and streams the text that is final; true if a stop string was found.
    fn write(&mut self, Chosen { token, drawn }: Chosen, vocabulary: &Vocabulary) -> bool {
        self.written.push(token);
        self.lookup.push(token);
        self.adjustments.push(token);
        let bytes = vocabulary.tokenizer.bytes(token);
        // Text that the format repeats is no loop.
        self.loops |= self.closing.is_none() && self.repetition.push(token, bytes) && drawn;
        self.text.push(bytes);
        let (piece, stopped) = self.stops.show(self.text.so_far());
        if let Some(on_text) = self.on_text.as_ref().filter(|_| !piece.is_empty()) {
            on_text.send_piece(Piece::Text(piece, &self.logprobs[self.streamed_logprobs..]));
            self.streamed_logprobs = self.logprobs.len();
        }
        stopped
    }

    /// Switches to the shortest completion.
    fn close(&mut self) -> Result<(), String> {
        let Some(grammar) = &self.grammar else { return Ok(()) };
        let (mut completion, left) = (grammar.closing()?, self.limits.max_output_tokens - self.written.len());
        if completion.len() > left {
            return Err(format!("the shortest completion has {} tokens, but {left} are left", completion.len()));
        }
        completion.reverse();
        self.closing = Some(completion);
        Ok(())
    }

    fn finish_reason(&self) -> Finish {
        let is_closed = self.closing.is_some() || self.grammar.as_ref().is_some_and(Grammar::is_closing);
        if is_closed { self.closed_reason() } else { Finish::Stop }
    }

    /// The finish reason of constrained output that was closed before the model ended it.
    fn closed_reason(&self) -> Finish {
        if self.loops { Finish::LoopClosed } else { Finish::ClosedEarly }
    }

    /// The mask of free text this many tokens ahead.
    fn text_mask(&self, further: usize, vocabulary: &Vocabulary) -> Arc<[u32]> {
        let may_end = self.written.len() + further >= self.limits.min_output_tokens;
        Arc::clone(if may_end { &vocabulary.text } else { &vocabulary.more })
    }

    /// Samples from the allowed tokens except `refused`.
    fn draw(&mut self, logits: &mut Logits, refused: &[u32], vocabulary: &Vocabulary) -> Result<Chosen, String> {
        let position = self.written_tokens();
        let thinks = self.thinking().is_some();
        let (token, drawn) = match logits {
            // Whether other tokens were allowed is reported with log-probabilities, for which all logits are read.
            Logits::Drawn(token) => (*token, true),
            Logits::All(logits) => {
                let mask = match &mut self.grammar {
                    _ if thinks => Arc::clone(&vocabulary.thought),
                    Some(grammar) => {
                        let mut mask = grammar.mask()?;
                        refused.iter().for_each(|token| mask.disallow_token(*token));
                        mask.as_slice().into()
                    }
                    None => self.text_mask(0, vocabulary),
                };
                let allowed: u32 = mask.iter().map(|word| word.count_ones()).sum();
                (self.sampler.draw(logits, &mask, &self.adjustments.after(&[]), position)?, allowed > 1)
            }
            Logits::Unused => return Err("a token is to be drawn from a row that was not computed".into()),
        };
        let token = token.ok_or_else(|| "no token is allowed".to_owned())?;
        Ok(Chosen { token, drawn })
    }

    /// A token that the grammar allows and that leaves room for the shortest completion, or none at the end.
    fn next_constrained(&mut self, logits: &mut Logits, vocabulary: &Vocabulary) -> Result<Option<Chosen>, String> {
        let left = self.limits.max_output_tokens - self.written.len();
        if self.closing.is_none() {
            let mut refused = Vec::new();
            loop {
                // The draw changes the row.
                let mut row = match logits {
                    Logits::All(logits) => Logits::All(logits.clone()),
                    Logits::Drawn(token) => Logits::Drawn(*token),
                    Logits::Unused => Logits::Unused,
                };
                let drawn = self.draw(&mut row, &refused, vocabulary);
                let chosen = match drawn {
                    Err(_) if !refused.is_empty() => break,
                    drawn => drawn?,
                };
                let Some(grammar) = &mut self.grammar else { return Ok(Some(chosen)) };
                let token = chosen.token;
                if grammar.is_end(token) {
                    self.end_token = chosen.drawn.then_some(token);
                    return Ok(None);
                }
                if left == 0 {
                    break;
                }
                match grammar.accept_within(token, left - 1)? {
                    Acceptance::Accepted => return Ok(Some(chosen)),
                    Acceptance::Invalid if matches!(logits, Logits::All(_)) && refused.len() < MAX_REFUSED => {
                        refused.push(token);
                    }
                    Acceptance::Invalid | Acceptance::NoRoom => break,
                }
            }
            self.close()?;
        }
        let token = self.closing.as_mut().and_then(Vec::pop);
        if let (Some(grammar), Some(token)) = (&mut self.grammar, token) {
            grammar.accept(token)?;
        }
        Ok(token.map(|token| Chosen { token, drawn: false }))
    }

    /// Completes the text and streams the rest of it. A possible beginning of a stop string was held back and is not one.
    pub fn complete(&mut self) {
        self.text.complete();
        let text = self.stops.show_rest(self.text.so_far());
        let logprobs = self.logprobs.get(self.streamed_logprobs..).unwrap_or_default();
        if let Some(on_text) = self.on_text.as_ref().filter(|_| !text.is_empty() || !logprobs.is_empty()) {
            on_text.send_piece(Piece::Text(text, logprobs));
        }
    }

    /// Sends the reply after its end; its text is complete.
    pub fn answer(self, finish: Finish, usage: Usage, model: &str) {
        let seconds = self.submitted.elapsed().as_secs_f64();
        let usage = Usage { calls: 1, seconds, output_tokens: self.written_tokens(), ..usage };
        let diverged = self.rendered.segments.divergence(usage.cached_tokens);
        let text = self.text.so_far()[..self.stops.shown_bytes()].to_owned();
        let stopped_by = self.stops.found().map(str::to_owned);
        // A stop string may end with the limit.
        let finish = if stopped_by.is_some() { Finish::Stop } else { finish };
        let (logprobs, rendered, model) = (self.logprobs, self.rendered.text.clone(), model.to_owned());
        let thought = self.thought.map(Thought::finish);
        let (tool_calls, end_token) = (Vec::new(), self.end_token.filter(|_| stopped_by.is_none()));
        let reply = Reply {
            text,
            thought,
            tool_calls,
            finish,
            stopped_by,
            end_token,
            usage,
            diverged,
            logprobs,
            rendered,
            model,
        };
        // The send fails only if the caller no longer awaits the reply.
        let _ = self.reply.send(Ok(reply));
    }
}
