//! The report of a run of measurements: the numbers and their provenance.

use std::fmt;

use serde::Serialize;

use super::{Items, Preset};
use crate::Host;

/// The subject of the measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpeedReport {
    /// The model and its quantisation, as typed.
    pub model: String,
    pub quantise: Option<String>,
    /// Tokens of its context.
    pub context_tokens: usize,
    /// The server that ran the same workloads.
    pub peer: Option<String>,
    pub preset: Preset,
    pub repetitions: usize,
    /// Speculative tokens per step.
    #[serde(rename = "most_guesses")]
    pub max_draft_tokens: usize,
    pub machine: Host,
    /// Peak memory of this process, mapped weights included, if the system reports it.
    pub peak_memory_bytes: Option<u64>,
    /// The same for the peer, if its process was given.
    pub peer_peak_memory_bytes: Option<u64>,
    /// Why the run ended early, if it did; earlier measurements are kept.
    pub ended_early: Option<String>,
    #[serde(flatten)]
    pub items: Items,
}

impl fmt::Display for SpeedReport {
    /// Writes it as Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpeedReport { model, quantise, context_tokens, preset, repetitions, max_draft_tokens, machine, .. } = self;
        writeln!(f, "# Speed\n")?;
        let quantised = quantise.as_ref().map_or_else(String::new, |format| format!(", quantised to {format}"));
        writeln!(f, "{model}{quantised}, context of {context_tokens} tokens; sizes for a {preset}.")?;
        let cpu = machine.cpu.as_deref().unwrap_or("an unknown processor");
        let cores = machine.cores.map_or_else(String::new, |cores| format!(", {cores} cores"));
        let memory = machine.memory_bytes.map_or_else(String::new, |bytes| format!(", {:.1} GB", bytes as f64 / 1e9));
        let kernels = machine.kernels.as_ref().map_or_else(String::new, |kernels| format!("; kernels: {kernels}"));
        writeln!(f, "{cpu}{cores}{memory}, {}{kernels}.", machine.platform)?;
        if let Some(peer) = &self.peer {
            writeln!(f, "Beside the server at {peer}, in turns.")?;
        }
        writeln!(f, "A step computes up to {max_draft_tokens} draft tokens.")?;
        writeln!(f, "Repetitions of each measurement: {repetitions}.")?;
        write!(f, "{}", self.items)?;
        let gigabytes = |bytes: u64| format!("{:.2} GB", bytes as f64 / 1e9);
        if let Some(bytes) = self.peak_memory_bytes {
            let peer = self.peer_peak_memory_bytes.map(|peer| format!("; the server's: {}", gigabytes(peer)));
            writeln!(f, "\nPeak memory: {}{}.", gigabytes(bytes), peer.unwrap_or_default())?;
        }
        if !self.items.left_out.is_empty() {
            writeln!(f, "\nLeft out:\n")?;
        }
        self.items.left_out.iter().try_for_each(|what| writeln!(f, "- {what}"))?;
        self.ended_early.as_ref().map_or(Ok(()), |reason| writeln!(f, "\nThe run ended early: {reason}."))
    }
}
