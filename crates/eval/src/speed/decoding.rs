//! How tokens are drawn in measurements: as the agents do, more freely, or greedily.

use std::fmt;
use std::str::FromStr;

use calls::Sampling;
use serde_json::{Value, json};

use crate::names;

/// The sampling of measured answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decoding {
    /// Temperature 0.3 over the whole vocabulary: the agents' default.
    Agents,
    /// Temperature 0.8 and top_p 0.95: usual for chats.
    Chat,
    /// As chat, with repetition, frequency and presence penalties.
    Penalties,
    Greedy,
}

impl Decoding {
    const ALL: [Decoding; 4] = [Decoding::Agents, Decoding::Chat, Decoding::Penalties, Decoding::Greedy];
    /// Those that are measured unless others are named.
    pub const DEFAULT: [Decoding; 3] = [Decoding::Agents, Decoding::Chat, Decoding::Greedy];

    /// The options of a call; every seed gives other answers.
    pub(super) fn sampling(self, seed: u64) -> Sampling {
        match self {
            Decoding::Agents => Sampling::at(0.3, seed),
            Decoding::Chat => Sampling { top_p: 0.95, ..Sampling::at(0.8, seed) },
            Decoding::Penalties => Sampling {
                repetition_penalty: 1.1,
                frequency_penalty: 0.1,
                presence_penalty: 0.1,
                ..Decoding::Chat.sampling(seed)
            },
            Decoding::Greedy => Sampling::GREEDY,
        }
    }

    /// Its values in names of cases.
    pub(super) fn values(self) -> &'static str {
        match self {
            Decoding::Agents => "T 0.3",
            Decoding::Chat => "T 0.8 top_p 0.95",
            Decoding::Penalties => "T 0.8 top_p 0.95 with penalties",
            Decoding::Greedy => "greedy",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Decoding::Agents => "agents",
            Decoding::Chat => "chat",
            Decoding::Penalties => "penalties",
            Decoding::Greedy => "greedy",
        }
    }
}

/// Adds sampling options to a request. All are stated, because servers differ in their defaults (llama-server: top_k 40,
/// min_p 0.05).
pub(super) fn put(sampling: &Sampling, body: &mut Value) {
    body["temperature"] = json!(sampling.temperature);
    body["top_p"] = json!(sampling.top_p);
    body["top_k"] = json!(sampling.top_k);
    body["min_p"] = json!(sampling.min_p);
    body["frequency_penalty"] = json!(sampling.frequency_penalty);
    body["presence_penalty"] = json!(sampling.presence_penalty);
    if sampling.repetition_penalty != 1.0 {
        // memlocal's and vLLM's name, and llama-server's.
        body["repetition_penalty"] = json!(sampling.repetition_penalty);
        body["repeat_penalty"] = json!(sampling.repetition_penalty);
    }
    body["seed"] = json!(sampling.seed & i64::MAX.cast_unsigned());
}

impl fmt::Display for Decoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Decoding {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        names::value(&Decoding::ALL.map(|decoding| (decoding, decoding.name())), typed)
    }
}
