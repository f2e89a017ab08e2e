//! Prompts as a model reads them: rendered by its chat template and tokenised, on the caller's thread.

use std::ops::Range;
use std::sync::Arc;

use calls::{Call, CallError};
use models::{ChatOptions, ModelError, Tokenizer};

use crate::contents;
use crate::frontend::ModelFrontend;
use crate::rendered::Rendered;
use crate::segments::Segments;
use crate::thought::OPEN;
use crate::tool_syntax;
use crate::written::Written;

impl ModelFrontend {
    /// The prompt of a call. A prompt that was rendered for the same tenant a short time ago, to be counted or for another
    /// choice, is not rendered again.
    ///
    /// # Errors
    /// [`CallError::Template`] if the chat template refuses the prompt, and [`CallError::Infill`] if the model has no tokens for
    /// a place to fill in.
    pub fn prompt(&self, call: &Call) -> Result<Arc<Rendered>, CallError> {
        let thinks = call.limits.thinking_tokens > 0;
        if let Some(known) = self.rendered.find(call.tenant, &call.prompt, thinks) {
            return Ok(known);
        }
        let rendered = Arc::new(self.prompt_after(call, &Written::default())?);
        self.rendered.keep(call.tenant, call.prompt.clone(), thinks, Arc::clone(&rendered));
        Ok(rendered)
    }

    /// The prompt of a call, followed by the part of the reply that is written already.
    ///
    /// # Errors
    /// As [`ModelFrontend::prompt`].
    pub fn prompt_after(&self, call: &Call, written: &Written) -> Result<Rendered, CallError> {
        let failed = failed_in(call.step);
        if let (Some(before), Some(behind)) = (call.prompt.as_bare(), call.prompt.suffix()) {
            return self.infill(call, before, behind);
        }
        if let Some(text) = call.prompt.as_bare() {
            let whole = 0..text.len();
            let thinks = call.limits.thinking_tokens > 0;
            let text = if thinks { with_open_thought(text.to_owned()) } else { text.to_owned() };
            let tokens = self.tokens(call, &text, std::slice::from_ref(&whole))?;
            let segments = Segments::find(&call.prompt, &[Some(whole)], &tokens, &self.tokenizer);
            return Ok(Rendered { text, tokens, segments });
        }
        let prompt = self.tool_syntax.prompt(&call.prompt);
        let turns = prompt.messages();
        let refused = |error: ModelError| {
            let ModelError::Template { reason } = error else { return failed(error) };
            CallError::Template { step: call.step, model: self.name.clone(), reason }
        };
        let thinks = call.limits.thinking_tokens > 0 || written.thinks;
        let definitions = tool_syntax::definitions(&prompt);
        let options = ChatOptions {
            tools: definitions.as_ref(),
            thinks: Some(thinks),
            opens_turn: true,
            variables: Some(prompt.variables()),
        };
        let messages: Vec<_> = turns.iter().map(calls::Message::for_template).collect();
        let text = self.template.render_chat(&messages, options).map_err(refused)?;
        let contents = contents::find(&self.template, &text, &turns, options);
        let mut plain: Vec<Range<usize>> = contents.texts.iter().flatten().chain(&contents.thoughts).cloned().collect();
        plain.extend(tool_syntax::quoted_specials(&prompt, &text, &self.tokenizer));
        let text = if thinks { with_open_thought(text) } else { text };
        let start = text.len()..text.len() + call.prompt.reply_start().len();
        let text = text + call.prompt.reply_start();
        plain.push(start);
        plain.extend(written.plain_after(text.len()));
        plain.sort_by_key(|range| range.start);
        let text = text + &written.text;
        let tokens = self.tokens(call, &text, &plain)?;
        let segments = Segments::find(&prompt, &contents.texts, &tokens, &self.tokenizer);
        Ok(Rendered { text, tokens, segments })
    }

    /// The tokens of a rendered prompt. Those of one that is far too long are only counted: they take hundreds of bytes each.
    fn tokens(&self, call: &Call, text: &str, plain: &[Range<usize>]) -> Result<Vec<u32>, CallError> {
        let failed = failed_in(call.step);
        if text.len() > self.context_tokens.saturating_mul(BYTES_PER_TOKEN) {
            let tokens = self.tokenizer.count(text).map_err(failed)?;
            if tokens / 2 > self.context_tokens {
                self.fits(call.step, tokens, call.limits.max_output_tokens)?;
            }
        }
        self.tokenizer.encode_prompt(text, plain).map_err(failed)
    }

    /// The tokens of the part of a reply that is written already.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn written_tokens(&self, step: &'static str, written: &Written) -> Result<Vec<u32>, CallError> {
        self.tokenizer.encode_within(&written.text).map_err(failed_in(step))
    }
}

/// Bytes per token from which on a text may be far longer than the context.
pub(crate) const BYTES_PER_TOKEN: usize = 16;

fn failed_in(step: &'static str) -> impl Fn(ModelError) -> CallError + Copy {
    move |error| CallError::Failed { step, reason: error.to_string() }
}

/// The tokens around the two parts of a text with a place to fill in, as Qwen2.5 was trained: the text before the place follows
/// the first, the text behind it the second, and the filling the third (Qwen2.5-Coder, arXiv 2409.12186, section 3.2.2).
const INFILL: [&str; 3] = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"];

impl ModelFrontend {
    /// The token of [`INFILL`] that the tokenizer does not have, if there is one.
    pub fn missing_for_infill(tokenizer: &Tokenizer) -> Option<&'static str> {
        INFILL.into_iter().find(|token| tokenizer.special(token).is_none())
    }

    /// A text with a place to fill in. Special tokens in the text are read as plain text.
    fn infill(&self, call: &Call, before: &str, behind: &str) -> Result<Rendered, CallError> {
        let step = call.step;
        if let Some(token) = ModelFrontend::missing_for_infill(&self.tokenizer) {
            return Err(CallError::Infill { step, model: self.name.clone(), token });
        }
        let [prefix, suffix, middle] = INFILL;
        let text = [prefix, before, suffix, behind, middle].concat();
        let before = prefix.len()..prefix.len() + before.len();
        let behind = before.end + suffix.len()..text.len() - middle.len();
        let tokens = self.tokens(call, &text, &[before.clone(), behind])?;
        let segments = Segments::find(&call.prompt, &[Some(before)], &tokens, &self.tokenizer);
        Ok(Rendered { text, tokens, segments })
    }
}

/// The rendered prompt of a model that is to think, inside its thought. Some templates open the thought themselves.
fn with_open_thought(text: String) -> String {
    if text.trim_end().ends_with(OPEN.trim_end()) { text } else { text + OPEN }
}
