//! Replies that call tools, in the syntax of the model's own chat template.
//!
//! A reply is generated in steps, each of which continues what is written: text until the marker of a call, a name among
//! the allowed ones, arguments under the tool's schema. So a call always parses and validates.

use calls::{Call, CallError, Finish, OnText, OutputFormat, Piece, Reply, Tool, ToolCall, ToolUse};

use crate::engine::Engine;
use crate::frontend::ModelFrontend;
use crate::thought::CLOSE;
use crate::written::Written;

/// A reply in steps.
struct Steps<'a> {
    engine: &'a Engine,
    model: usize,
    frontend: &'a ModelFrontend,
    /// The call, whose limits are those of the whole reply.
    call: Call,
    written: Written,
    /// The reply so far; none before the first step.
    reply: Option<Reply>,
}

impl Engine {
    /// The reply to a call that may use tools.
    pub(crate) async fn call_tools(
        &self,
        model: usize,
        frontend: &ModelFrontend,
        call: Call,
        tools: &ToolUse,
    ) -> Result<Reply, CallError> {
        let allowed: Vec<Tool> = call.prompt.tools().iter().filter(|tool| tools.allows(tool)).cloned().collect();
        if allowed.is_empty() || call.prompt.as_bare().is_some() {
            let reason = "a tool is to be called, but there is none".to_owned();
            return Err(CallError::OutputFormat { step: call.step, reason });
        }
        let mut steps = Steps { engine: self, model, frontend, call, written: Written::default(), reply: None };
        let mut begun = if tools.required { Some(String::new()) } else { steps.text().await? };
        while let Some(marker) = begun {
            let is_whole = steps.tool(&allowed, &marker).await?;
            begun = if is_whole && tools.parallel { steps.another().await? } else { None };
        }
        steps.reply.ok_or(CallError::Closed)
    }
}

impl Steps<'_> {
    /// Writes text until a call of a tool begins; returns its marker, or `None` if the reply ends without one.
    async fn text(&mut self) -> Result<Option<String>, CallError> {
        if self.call.output_format != OutputFormat::Text {
            return self.json().await;
        }
        let syntax = &self.frontend.tool_syntax;
        let mut watches = true;
        loop {
            let Some(call) = self.step(OutputFormat::Text)? else { return Ok(None) };
            let stop = call.stop.iter().cloned().chain(syntax.stops().filter(|_| watches)).collect();
            let (on_text, logprobs) = (self.call.on_text.clone(), self.call.logprobs);
            let reply = self.run(Call { stop, on_text, logprobs, ..call }).await?;
            self.written.said(&reply.text);
            let begun = reply.stopped_by.clone().filter(|stop| watches && syntax.stops().any(|marker| marker == *stop));
            let before = [self.call.prompt.reply_start(), &self.written.text];
            let is_first = before.iter().all(|text| text.trim().is_empty()) || syntax.is_tag;
            self.add(reply);
            let Some(begun) = begun else { return Ok(None) };
            self.written.syntax(&begun);
            // The marker is none of the caller's stop strings.
            if let Some(reply) = &mut self.reply {
                reply.stopped_by = None;
            }
            if is_first {
                return Ok(Some(begun.trim_start().to_owned()));
            }
            // A JSON object in the middle of a text is text.
            if let Some(reply) = &mut self.reply {
                reply.text.push_str(&begun);
            }
            if let Some(on_text) = &self.call.on_text {
                on_text.send(&begun);
            }
            watches = false;
        }
    }

    /// Writes a reply in an output format, unless a call of a tool begins; returns the marker of that call.
    async fn json(&mut self) -> Result<Option<String>, CallError> {
        let syntax = &self.frontend.tool_syntax;
        if !syntax.is_tag {
            let reason = "calls of this model's tools cannot be told from answers in JSON: ask for tools or a format";
            return Err(CallError::OutputFormat { step: self.call.step, reason: reason.to_owned() });
        }
        let starts = "{[\"-0123456789tfn".chars().map(String::from);
        let starts = starts.chain([syntax.marker.clone()]).collect();
        let Some(call) = self.step(OutputFormat::Choice(starts))? else { return Ok(None) };
        let reply = self.run(Call { on_text: self.thought_only(), ..call }).await?;
        let calls = reply.text == syntax.marker;
        self.add(Reply { text: String::new(), ..reply });
        if calls {
            self.written.syntax(&syntax.marker);
            return Ok(Some(syntax.marker.clone()));
        }
        let Some(call) = self.step(self.call.output_format.clone())? else { return Ok(None) };
        let (on_text, logprobs) = (self.call.on_text.clone(), self.call.logprobs);
        let reply = self.run(Call { on_text, logprobs, ..call }).await?;
        self.add(reply);
        Ok(None)
    }

    /// Writes a call of one of these tools whose first characters are written; false if the limit is reached.
    async fn tool(&mut self, allowed: &[Tool], begun: &str) -> Result<bool, CallError> {
        let syntax = &self.frontend.tool_syntax;
        let rest = |tool: &Tool| syntax.head(tool).strip_prefix(begun).unwrap_or_default().to_owned();
        let known = [rest(&allowed[0])];
        let thinks = self.reply.is_none() && self.call.limits.thinking_tokens > 0;
        let head = if allowed.len() == 1 && !thinks {
            known[0].clone()
        } else {
            let Some(call) = self.step(OutputFormat::Choice(allowed.iter().map(rest).collect()))? else {
                return Ok(false);
            };
            let reply = self.run(Call { on_text: self.thought_only(), ..call }).await?;
            let head = reply.text.clone();
            self.add(Reply { text: String::new(), ..reply });
            head
        };
        self.written.syntax(&head);
        let Some(tool) = allowed.iter().find(|tool| rest(tool) == head) else { return Ok(false) };
        let Some(call) = self.step(OutputFormat::Json(tool.schema()))? else { return Ok(false) };
        let on_text = self.call.on_text.clone();
        if let Some(on_text) = &on_text {
            on_text.send_piece(Piece::ToolCall(&tool.name));
        }
        let on_text = on_text.map(|on_text| {
            OnText::pieces(move |piece| {
                if let Piece::Text(text, _) = piece {
                    on_text.send_piece(Piece::Arguments(text));
                }
            })
        });
        let reply = self.run(Call { on_text, ..call }).await?;
        let blank = &syntax.middle[syntax.middle.trim_end().len()..];
        self.written.syntax(blank);
        self.written.said(&reply.text);
        self.written.syntax(&syntax.close);
        let (arguments, is_cut) = (reply.text.clone(), reply.finish.is_cut());
        // What ended the arguments does not end the reply.
        self.add(Reply { text: String::new(), end_token: None, ..reply });
        if let Some(reply) = &mut self.reply {
            let id = format!("call-{}", reply.tool_calls.len());
            reply.tool_calls.push(ToolCall { id, name: tool.name.clone(), arguments });
        }
        Ok(!is_cut)
    }

    /// The marker of another call, if one follows. A reply ends with its calls: if no call follows, what the model would
    /// write is not part of it.
    async fn another(&mut self) -> Result<Option<String>, CallError> {
        let syntax = &self.frontend.tool_syntax;
        let Some(between) = &syntax.between else { return Ok(None) };
        let next = format!("{between}{}", syntax.marker);
        let tokens = self.tokens(&next)?;
        if self.left()? < tokens {
            return Ok(None);
        }
        let Some(mut call) = self.step(OutputFormat::Text)? else { return Ok(None) };
        call.limits.max_output_tokens = tokens;
        let reply = self.run(Call { stop: syntax.stops().collect(), ..call }).await?;
        let follows = reply.stopped_by.is_some() && reply.text.trim().is_empty();
        self.add(Reply { text: String::new(), finish: Finish::Stop, stopped_by: None, ..reply });
        if !follows {
            return Ok(None);
        }
        self.written.syntax(&next);
        Ok(Some(syntax.marker.clone()))
    }

    fn tokens(&self, text: &str) -> Result<usize, CallError> {
        let step = self.call.step;
        let failed = |error: models::ModelError| CallError::Failed { step, reason: error.to_string() };
        Ok(self.frontend.tokenizer.encode_within(text).map_err(failed)?.len())
    }

    /// The tokens that may still be written: the limit of a thought is its own, whether it was used or not.
    fn left(&self) -> Result<usize, CallError> {
        Ok(self.call.limits.max_output_tokens.saturating_sub(self.tokens(self.written.answer())?))
    }

    /// The call of the next step in this output format; `None`, which ends the reply, if the format does not fit into
    /// what is left of the limit.
    ///
    /// # Errors
    /// [`CallError::OutputFormat`] if it would not fit into the whole limit.
    fn step(&mut self, output_format: OutputFormat) -> Result<Option<Call>, CallError> {
        let (step, left) = (self.call.step, self.left()?);
        let grammar = self.frontend.grammars.grammar(self.call.tenant, &output_format);
        let grammar = grammar.map_err(|reason| CallError::OutputFormat { step, reason })?;
        let least = grammar.map_or(1, |grammar| grammar.shortest());
        if least > left
            && let Some(reply) = &mut self.reply
        {
            (reply.finish, reply.end_token) = (Finish::Length, None);
            return Ok(None);
        }
        let mut call = Call { output_format, logprobs: None, on_text: None, ..self.call.clone() };
        call.limits.max_output_tokens = left;
        if let Some(reply) = &self.reply {
            call.limits.thinking_tokens = 0;
            call.sampling.seed = seed_of_step(call.sampling.seed, reply.usage.calls as u64);
        }
        Ok(Some(call))
    }

    async fn run(&self, call: Call) -> Result<Reply, CallError> {
        self.engine.submit(self.model, self.frontend, call, &self.written).await
    }

    /// Passes the thought on, and nothing of the step's text.
    fn thought_only(&self) -> Option<OnText> {
        self.call.on_text.clone().map(|on_text| {
            OnText::pieces(move |piece| {
                if let Piece::Thought(_) = piece {
                    on_text.send_piece(piece);
                }
            })
        })
    }

    /// Adds the reply of a step. The prompt counts once: what later steps read of the reply was counted when it was
    /// written.
    fn add(&mut self, next: Reply) {
        let Some(reply) = &mut self.reply else {
            if let Some(thought) = &next.thought {
                self.written.think(thought, &format!("\n{CLOSE}\n\n"));
            }
            self.reply = Some(next);
            return;
        };
        reply.text.push_str(&next.text);
        reply.logprobs.extend(next.logprobs);
        (reply.finish, reply.stopped_by, reply.end_token) = (next.finish, next.stopped_by, next.end_token);
        reply.usage.calls += next.usage.calls;
        reply.usage.output_tokens += next.usage.output_tokens;
        reply.usage.seconds += next.usage.seconds;
    }
}

/// The seed of a later step. Each step draws from position 0, so with one seed all of them would draw by the same random
/// numbers.
fn seed_of_step(seed: u64, step: u64) -> u64 {
    seed ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::seed_of_step;

    #[test]
    fn every_step_has_a_seed_of_its_own() {
        let seeds: BTreeSet<u64> = (0..4).flat_map(|seed| (0..64).map(move |step| seed_of_step(seed, step))).collect();
        assert_eq!(seeds.len(), 4 * 64);
        assert_eq!(seed_of_step(7, 0), 7, "the first step draws as a reply without tools does");
    }
}
