//! The command that trains.

use std::path::PathBuf;

use launch::flags::{ModelFlags, at_least_one, bytes};

#[derive(Debug, clap::Args)]
pub struct Train {
    /// Corpus to learn from
    #[arg(long, value_name = "NAME")]
    pub corpus: String,
    /// Questions to write; many of them are dropped
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = at_least_one)]
    pub questions: usize,
    /// Steps of training [default: every example twice]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub steps: Option<usize>,
    /// Seed of the choice of texts and answers
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Begin with the adapter that the model comes with, not with the one that the corpus has
    #[arg(long)]
    pub anew: bool,
    /// Keep the adapter even if it answers the held-out examples no better
    #[arg(long)]
    pub keep: bool,
    /// Memory that training may take, such as 12GiB or 16GB, at most what is free [default: three quarters of what is free, at
    /// most 4 GiB]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Do not ask for confirmation; needed where there is no terminal to ask at
    #[arg(long)]
    pub yes: bool,
    /// Copy the training examples to this file: they hold text of the documents
    #[arg(long, value_name = "FILE")]
    pub keep_data: Option<PathBuf>,
    #[command(flatten)]
    pub models: ModelFlags,
}
