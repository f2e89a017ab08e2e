//! Sizes of prompts and batches by the class of machine: the sizes of a server are too slow on a laptop, and those
//! of a laptop too short on a server.

use std::fmt;
use std::str::FromStr;

use crate::names;

/// A class of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// One user, a few cores, 8 to 16 GB of memory: models up to 3B, quantised.
    Laptop,
    /// A few users or agents, 32 to 64 GB or one GPU: models up to 14B.
    Workstation,
    /// Many concurrent users, 128 GB or more or a large GPU: models up to 32B.
    Server,
}

/// The sizes for a class of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Tokens of single prompts.
    pub prompts: &'static [usize],
    /// Concurrent answers.
    pub answers: &'static [usize],
    /// Prompts with a common prefix, and the tokens of that prefix.
    pub siblings: usize,
    pub trunk: usize,
}

impl Preset {
    const NAMES: [(Preset, &'static str); 3] =
        [(Preset::Laptop, "laptop"), (Preset::Workstation, "workstation"), (Preset::Server, "server")];

    pub(super) fn sizes(self) -> Sizes {
        match self {
            Preset::Laptop => Sizes { prompts: &[512, 2048], answers: &[1, 2, 4], siblings: 4, trunk: 2048 },
            Preset::Workstation => {
                Sizes { prompts: &[512, 2048, 7168], answers: &[1, 4, 8, 16], siblings: 8, trunk: 4096 }
            }
            Preset::Server => {
                Sizes { prompts: &[2048, 8192, 32768], answers: &[1, 8, 32, 64], siblings: 32, trunk: 8192 }
            }
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(names::name(&Preset::NAMES, self))
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        names::value(&Preset::NAMES, typed)
    }
}
