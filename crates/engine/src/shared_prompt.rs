//! The beginning of prompts that the operator shares among tenants. Its keys and values are computed before the first call and
//! stay, so that what a tenant sees of them does not depend on others.

use calls::{Agent, Call, CallError, Prompt, Stability};
use models::PAGE_TOKENS;

use crate::frontend::ModelFrontend;
use crate::model_runner::ModelRunner;
use crate::written::Written;

/// Computes the whole pages with which prompts begin that have this system message, and pins them: calls have as much less of the
/// KV cache, whose size is `kv_tokens`.
///
/// # Errors
/// If they are none or exceed the context, if the chat template refuses a system message, or if a forward pass fails.
pub(crate) fn pin(
    frontend: &mut ModelFrontend,
    runner: &mut ModelRunner,
    system: &str,
    kv_tokens: usize,
    step_tokens: usize,
) -> Result<(), String> {
    let mut tokens = frontend.tokens_before_user(system).map_err(|error| error.to_string())?;
    let count = tokens.len();
    if count < PAGE_TOKENS {
        return Err(format!("it has {count} tokens; a page of the KV cache has {PAGE_TOKENS}"));
    }
    let pinned = count / PAGE_TOKENS * PAGE_TOKENS;
    // A prompt counts its pinned tokens too.
    let context_tokens = frontend.context_tokens.min(kv_tokens.saturating_sub(pinned));
    if count >= context_tokens {
        return Err(format!("it has {count} tokens, but prompts can have {context_tokens}"));
    }
    tokens.truncate(pinned);
    frontend.context_tokens = context_tokens;
    runner.pin(&tokens, step_tokens)
}

impl ModelFrontend {
    /// The tokens with which prompts begin that have this system message: those that two of them have in common.
    fn tokens_before_user(&self, system: &str) -> Result<Vec<u32>, CallError> {
        let rendered = |user: &str| {
            let prompt = Prompt::new().system(system).user(Stability::Volatile, user);
            let call = Call::new(Agent::Responder, "shared prompt", prompt, 1);
            self.prompt_after(&call, &Written::default()).map(|rendered| rendered.tokens)
        };
        let (one, other) = (rendered("a")?, rendered("?")?);
        Ok(one.into_iter().zip(other).take_while(|(a, b)| a == b).map(|(token, _)| token).collect())
    }
}
