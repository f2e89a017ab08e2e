//! A model that writes one word and then never ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{BoxFuture, Call, CallError, Caller, ModelInfo, Reply, Scripted, Tokens};

/// Counts the calls that it has begun, and those that were cancelled; clones share the counts. Its context has 8,192
/// tokens.
#[derive(Clone)]
pub struct Thinker {
    script: Arc<Scripted>,
    begun: Arc<AtomicUsize>,
    given_up: Arc<AtomicUsize>,
}

struct GivenUp(Arc<AtomicUsize>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Default for Thinker {
    fn default() -> Thinker {
        let script = Arc::new(Scripted::new(8192).named("thinker"));
        Thinker { script, begun: Arc::default(), given_up: Arc::default() }
    }
}

impl Thinker {
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    pub fn given_up(&self) -> usize {
        self.given_up.load(Ordering::SeqCst)
    }
}

impl Caller for Thinker {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            let _dropped = GivenUp(Arc::clone(&self.given_up));
            if let Some(on_text) = &call.on_text {
                on_text.send("Well");
            }
            std::future::pending().await
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.script.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}
