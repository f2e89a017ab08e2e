//! Adapters of the engine's language models: which a call runs with, and how results name it.

use std::collections::HashMap;

use calls::{AdapterChoice, Agent, CallError};
use models::adapter::Adapter;

use crate::handle::Front;

/// The adapters that an engine is started with.
#[derive(Debug, Default)]
pub struct Adapters {
    pub loaded: Vec<NamedAdapter>,
    /// Which of them serves an agent; the agent's model is the adapter's.
    pub agents: HashMap<Agent, usize>,
}

/// An adapter of one of the language models.
#[derive(Debug)]
pub struct NamedAdapter {
    pub name: String,
    /// The index of its base model.
    pub model: usize,
    pub adapter: Adapter,
}

/// What a caller's thread knows of an adapter.
pub(crate) struct AdapterFront {
    pub name: String,
    /// `BASE:ADAPTER`
    pub served_name: String,
    pub digest: [u8; 32],
}

impl Front {
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
