//! What callers' threads know of a model: enough to prepare a call for the engine's thread and to describe the model.

use std::sync::Arc;

use calls::{AdapterChoice, CallError};
use models::{ChatTemplate, EncoderTokenizer, Tokenizer};

use crate::adapters::AdapterFrontend;
use crate::admission::Admission;
use crate::details::Origin;
use crate::grammars::Grammars;
use crate::rendered::RenderedPrompts;
use crate::snapshot::{CheckedSnapshots, Identity};
use crate::state::PublishedState;
use crate::thought::Markers;
use crate::tool_syntax::ToolSyntax;

/// The part of a language model that callers' threads use.
pub(crate) struct ModelFrontend {
    pub name: String,
    pub adapters: Vec<AdapterFrontend>,
    pub tokenizer: Arc<Tokenizer>,
    pub template: ChatTemplate,
    pub tool_syntax: ToolSyntax,
    pub grammars: Grammars,
    pub markers: Arc<Markers>,
    /// End-of-reply tokens.
    pub eos: Vec<u32>,
    pub context_tokens: usize,
    pub parameters: u64,
    pub page_bytes: usize,
    pub identity: Identity,
    pub origin: Origin,
    pub checked: CheckedSnapshots,
    pub rendered: RenderedPrompts,
    pub published: Arc<PublishedState>,
    pub admission: Admission,
}

impl ModelFrontend {
    /// # Errors
    /// [`CallError::TooLong`] if prompt and reply exceed the context.
    pub fn fits(&self, step: &'static str, prompt_tokens: usize, max_output_tokens: usize) -> Result<(), CallError> {
        let context_tokens = self.context_tokens;
        if prompt_tokens.saturating_add(max_output_tokens) > context_tokens {
            return Err(CallError::TooLong { step, prompt_tokens, max_output_tokens, context_tokens });
        }
        Ok(())
    }

    /// The index of the adapter that a call runs with; `of_agent` is that of its agent.
    ///
    /// # Errors
    /// [`CallError::NoModel`] if the model has no adapter of that name.
    pub fn adapter(&self, choice: &AdapterChoice, of_agent: Option<usize>) -> Result<Option<usize>, CallError> {
        match choice {
            AdapterChoice::OfAgent => Ok(of_agent),
            AdapterChoice::Base => Ok(None),
            AdapterChoice::Named(name) => {
                let found = self.adapters.iter().position(|adapter| *adapter.name == **name);
                let missing = || CallError::NoModel { what: format!("the adapter {name} of {}", self.name) };
                found.map(Some).ok_or_else(missing)
            }
        }
    }

    /// The digest of an adapter.
    pub fn digest_of(&self, adapter: Option<usize>) -> Option<&[u8; 32]> {
        adapter.map(|index| &self.adapters[index].digest)
    }

    /// The model and each of its adapters: every way in which it serves calls.
    pub fn variants(&self) -> impl Iterator<Item = Option<usize>> {
        std::iter::once(None).chain((0..self.adapters.len()).map(Some))
    }
}

/// The part of an embedding model that callers' threads use.
pub(crate) struct EmbedderFrontend {
    pub admission: Admission,
    pub name: String,
    pub origin: Origin,
    pub tokenizer: EncoderTokenizer,
    pub dims: usize,
    pub window: usize,
}
