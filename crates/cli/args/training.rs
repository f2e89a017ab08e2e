//! The command that trains.

use std::path::PathBuf;

use launch::flags::{AdapterFlag, DEFAULT_MODEL, MODELS_HEADING, at_least_one, bytes, extension};
use models::Quantisation;

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
    // Not under the heading of models, since `[models]` names adapters that models run with.
    /// Adapter to begin with, instead of the one that the corpus or the model has: reader=PATH, `corpus:NAME` for that of
    /// another corpus, or none
    #[arg(long, value_name = "reader=PATH|corpus:NAME|none")]
    pub adapter: Option<AdapterFlag>,
    /// Language model that is trained and writes the questions: a name from `memlocal models list`,
    /// `hf:OWNER/REPO[:FILE|QUANT][@REVISION]`, a .gguf file, or a folder with safetensors
    #[arg(long, default_value = DEFAULT_MODEL, value_name = "NAME|PATH", env = "MEMLOCAL_MODEL", help_heading = MODELS_HEADING)]
    pub model: String,
    /// Make dense weights (bf16, f16, f32) smaller while questions are written and answered: q8_0 or q4_k
    #[arg(long, value_name = "FORMAT", help_heading = MODELS_HEADING)]
    pub quantise: Option<Quantisation>,
    /// Reach FACTOR times the context that the model was made for (YaRN) while questions are written and answered
    #[arg(long, value_name = "FACTOR", value_parser = extension, help_heading = MODELS_HEADING)]
    pub yarn: Option<f32>,
}
