//! Language models that are unloaded and loaded again. What callers' threads know of them stays, so that calls can be prepared and
//! described meanwhile.

use std::time::Instant;

use calls::CallError;
use models::LanguageModel;
use tokio::sync::oneshot;

use crate::adapters::NamedAdapter;
use crate::config::StartError;
use crate::engine::Engine;
use crate::frontend::ModelFrontend;
use crate::message::Message;
use crate::start::split;

impl Engine {
    /// The names of the language models, by index.
    pub fn language_models(&self) -> Vec<String> {
        self.frontends().iter().map(|frontend| frontend.name.clone()).collect()
    }

    /// Drops the weights and the KV cache of a language model; false if calls of it run, and nothing is done. Until it is
    /// loaded again its calls are refused with [`CallError::NoModel`], and its cached prefixes are lost. Blocks
    /// until the memory is free.
    ///
    /// # Errors
    /// [`CallError::Closed`].
    ///
    /// # Panics
    /// On a thread of asynchronous work.
    pub fn unload(&self, model: usize) -> Result<bool, CallError> {
        let (reply, receiver) = oneshot::channel();
        self.post(Message::Unload { model, reply }).ok_or(CallError::Closed)?;
        receiver.blocking_recv().map_err(|_| CallError::Closed)
    }

    /// Loads a language model again, with its adapters. It does nothing if the model is loaded.
    ///
    /// # Errors
    /// [`StartError::Changed`] if it is not what the engine was started with; others as at the start.
    ///
    /// # Panics
    /// On a thread of asynchronous work.
    pub fn load_again(
        &self,
        model: usize,
        language: LanguageModel,
        adapters: &[NamedAdapter],
    ) -> Result<(), StartError> {
        let known = &self.frontends()[model];
        let (name, shared_prompt) = (known.name.clone(), self.shared_prompt());
        let (read, mut runner) = split(name, language, adapters.iter(), self.config(), shared_prompt)?;
        if let Some(what) = known.difference(&read) {
            return Err(StartError::Changed { name: known.name.clone(), what });
        }
        runner.continue_as(known.published.clone(), Instant::now());
        let (reply, receiver) = oneshot::channel();
        let sent = self.post(Message::LoadAgain { model, runner: Box::new(runner), reply });
        sent.and_then(|()| receiver.blocking_recv().ok()).ok_or(StartError::Closed)
    }
}

impl ModelFrontend {
    /// What of a model is not as it was.
    fn difference(&self, read: &ModelFrontend) -> Option<&'static str> {
        let adapters = |frontend: &ModelFrontend| {
            frontend.adapters.iter().map(|adapter| (adapter.name.clone(), adapter.digest)).collect::<Vec<_>>()
        };
        if self.identity.source != read.identity.source || self.identity.spec != read.identity.spec {
            return Some("files");
        }
        (adapters(self) != adapters(read)).then_some("adapters")
    }
}
