//! The tokens of a call, for trainers.

use calls::Message;
use serde::{Deserialize, Serialize};

/// What a trainer needs of a call besides its texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The prompt as chat messages; empty for one without a chat.
    pub messages: Vec<Message>,
    /// The tokens of the reply, without the one that ended it.
    pub ids: Vec<u32>,
    /// Their log-probabilities before temperature and mask.
    pub logprobs: Vec<f32>,
    /// For each whether it was drawn from several tokens that were allowed. Runs of older versions do not have it.
    #[serde(default)]
    pub drawn: Option<Vec<bool>>,
    /// The temperature of the call; 0 takes the most likely tokens. Runs of older versions do not have it.
    #[serde(default)]
    pub temperature: Option<f32>,
    /// The token that the model drew to end the reply.
    pub end: Option<u32>,
}
