//! A caller for tests: a script, of which a test replaces the parts that it is about.

use std::sync::Arc;

use calls::{BoxFuture, Call, CallError, Caller, ModelInfo, Prefixes, Reply, Scorer, Scripted, Status, Tokens};

/// Answers a call; the script is that of the double.
type Answer = dyn for<'a> Fn(&'a Scripted, Call) -> BoxFuture<'a, Result<Reply, CallError>> + Send + Sync;

/// A script with other replies, tokens, models, prefixes or status.
pub struct Double {
    script: Arc<Scripted>,
    answer: Option<Box<Answer>>,
    tokens: Option<Box<dyn Tokens>>,
    models: Option<Box<dyn ModelInfo>>,
    prefixes: Option<Box<dyn Prefixes>>,
    status: Option<Box<dyn Status>>,
}

impl Double {
    /// The script itself, which the test may keep a handle of.
    pub fn new(script: impl Into<Arc<Scripted>>) -> Double {
        Double { script: script.into(), answer: None, tokens: None, models: None, prefixes: None, status: None }
    }

    /// Answers calls with a function.
    #[must_use]
    pub fn answering<F>(self, answer: F) -> Double
    where
        F: for<'a> Fn(&'a Scripted, Call) -> BoxFuture<'a, Result<Reply, CallError>> + Send + Sync + 'static,
    {
        Double { answer: Some(Box::new(answer)), ..self }
    }

    #[must_use]
    pub fn with_tokens(self, tokens: impl Tokens + 'static) -> Double {
        Double { tokens: Some(Box::new(tokens)), ..self }
    }

    #[must_use]
    pub fn with_models(self, models: impl ModelInfo + 'static) -> Double {
        Double { models: Some(Box::new(models)), ..self }
    }

    #[must_use]
    pub fn with_prefixes(self, prefixes: impl Prefixes + 'static) -> Double {
        Double { prefixes: Some(Box::new(prefixes)), ..self }
    }

    #[must_use]
    pub fn with_status(self, status: impl Status + 'static) -> Double {
        Double { status: Some(Box::new(status)), ..self }
    }
}

impl Caller for Double {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        match &self.answer {
            Some(answer) => answer(&self.script, call),
            None => self.script.call(call),
        }
    }

    fn tokens(&self) -> &dyn Tokens {
        self.tokens.as_deref().unwrap_or(&*self.script)
    }

    fn models(&self) -> &dyn ModelInfo {
        self.models.as_deref().unwrap_or(&*self.script)
    }

    fn prefixes(&self) -> Option<&dyn Prefixes> {
        self.prefixes.as_deref()
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        self.script.scorer()
    }

    fn status(&self) -> Option<&dyn Status> {
        self.status.as_deref()
    }
}
