//! Texts that are derived from passages by calls: how many calls run at once, and who their author is.

use calls::Agent;
use store::{Author, Digest};

use crate::core::prompt::Instructions;
use crate::core::session::Session;

/// Concurrent calls: more than any engine runs at once, fewer than its queue takes.
pub(super) const AT_ONCE: usize = 64;

/// The author of a derived text: the model, and a digest of its instructions.
pub(super) fn author(step: &str, instructions: Instructions, agent: Agent, session: &Session<'_>) -> Author {
    let Instructions { task, rules, cue } = instructions;
    let prompt = format!("{step} {}", Digest::of(&[task, rules, cue]));
    Author { model: session.caller.models().model(agent).to_owned(), prompt }
}
