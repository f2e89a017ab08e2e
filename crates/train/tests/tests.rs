//! Training on tiny networks, and the `memlocal-train` program. `peak_memory` is a program of its own, whose memory it measures.

mod killed;
mod reinforcement;
mod training;
