//! A call to one of the agents.

use calls::Agent;

use crate::core::prompt::{Input, Instructions, build};
use crate::core::session::{Ask, Session};

/// Tokens of an agent's reply (released code: 1,024).
const MAX_OUTPUT_TOKENS: usize = 1024;

/// A call to an agent.
pub(super) fn agent_ask(
    agent: Agent,
    step: &'static str,
    instructions: Instructions,
    inputs: Vec<Input>,
    draw: u64,
    session: &Session<'_>,
) -> Ask {
    let max_output_tokens = session.long_output_tokens(agent, MAX_OUTPUT_TOKENS);
    let prompt = build(session.settings.layout, instructions, inputs);
    Ask { agent, step, prompt, thinking_tokens: 0, max_output_tokens, draw }
}
