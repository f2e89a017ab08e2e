//! Calls of the research agents.

use calls::Agent;

use crate::core::prompt::{Input, Instructions, build, think_first};
use crate::core::session::{Ask, Session};

/// Items of the lists of queries and requests.
pub(super) const MAX_QUERIES: usize = 5;

/// Words of a need, a query or a request.
pub(super) const QUERY_WORDS: usize = 60;

/// Tokens of a research agent's reply (released code: 2,048).
pub(super) const MAX_OUTPUT_TOKENS: usize = 2048;

/// A call to an agent, which thinks about `thought` first where its profile has room for it.
pub(super) fn agent(
    agent: Agent,
    step: &'static str,
    instructions: Instructions,
    thought: &str,
    inputs: Vec<Input>,
    session: &Session<'_>,
) -> Ask {
    let (thinking_tokens, max_output_tokens) =
        (session.thinking_tokens(agent), session.output_tokens(agent, MAX_OUTPUT_TOKENS));
    let rules = think_first(instructions.rules, thought, thinking_tokens);
    let prompt = build(session.settings.layout, Instructions { rules: &rules, ..instructions }, inputs);
    Ask { agent, step, prompt, thinking_tokens, max_output_tokens, draw: 0 }
}
