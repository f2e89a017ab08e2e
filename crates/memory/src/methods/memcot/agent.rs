//! A call to one of the agents.

use calls::Role;

use crate::core::prompt::{Input, Instructions, build};
use crate::core::session::{Ask, Session};

/// Tokens of an agent's reply (released code: 1,024).
const MAX_OUTPUT_TOKENS: usize = 1024;

pub(super) fn agent(
    role: Role,
    step: &'static str,
    instructions: Instructions,
    inputs: Vec<Input>,
    draw: u64,
    session: &Session<'_>,
) -> Ask {
    let max_output_tokens = session.output_tokens(role, MAX_OUTPUT_TOKENS);
    let prompt = build(session.settings.layout, instructions, inputs);
    Ask { role, step, prompt, thinking_tokens: 0, max_output_tokens, draw }
}
