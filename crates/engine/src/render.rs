//! Prompts as a model reads them: rendered by its chat template and tokenised, on the caller's thread.

use std::ops::Range;
use std::sync::Arc;

use calls::{Call, CallError};
use models::{ChatOptions, ModelError};

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
    /// [`CallError::Template`] if the chat template refuses the prompt.
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
        let failed = |error: ModelError| CallError::Failed { step: call.step, reason: error.to_string() };
        if let Some(text) = call.prompt.as_bare() {
            let whole = 0..text.len();
            let thinks = call.limits.thinking_tokens > 0;
            let text = if thinks { with_open_thought(text.to_owned()) } else { text.to_owned() };
            let tokens = self.tokenizer.encode_prompt(&text, std::slice::from_ref(&whole)).map_err(failed)?;
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
        let mut plain: Vec<Range<usize>> = contents.iter().flatten().cloned().collect();
        plain.extend(tool_syntax::quoted_specials(&prompt, &text, &self.tokenizer));
        let text = if thinks { with_open_thought(text) } else { text };
        plain.extend(written.plain_after(text.len()));
        plain.sort_by_key(|range| range.start);
        let text = text + &written.text;
        let tokens = self.tokenizer.encode_prompt(&text, &plain).map_err(failed)?;
        let segments = Segments::find(&prompt, &contents, &tokens, &self.tokenizer);
        Ok(Rendered { text, tokens, segments })
    }
}

/// The rendered prompt of a model that is to think, inside its thought. Some templates open the thought themselves.
fn with_open_thought(text: String) -> String {
    if text.trim_end().ends_with(OPEN.trim_end()) { text } else { text + OPEN }
}
