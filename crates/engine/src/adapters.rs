//! Adapters of the engine's language models, and how results name them.

use std::collections::HashMap;

use calls::Agent;
use models::adapter::Adapter;

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
pub(crate) struct AdapterFrontend {
    pub name: String,
    /// `BASE:ADAPTER`
    pub served_name: String,
    pub digest: [u8; 32],
}
