//! Reinforcement on a tiny network with random weights: by answers, and by rollouts of files.

mod answers;
mod policy;
mod rollouts;
mod tiny;
