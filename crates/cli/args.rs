//! What can be typed.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use memory::{Layout, Method, OutputForm};

const STYLES: Styles = Styles::styled().header(AnsiColor::Yellow.on_default()).literal(AnsiColor::Green.on_default());

/// A long memory over private documents and conversations, on your own machine.
#[derive(Debug, Parser)]
#[command(version, styles = STYLES, after_help = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some inputs were skipped, 130 interrupted.")]
pub struct Args {
    /// Folder for models and corpora [default: the platform's data folder]
    #[arg(long, global = true, env = "MEMLOCAL_HOME", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// Open no network connection at all; HF_HUB_OFFLINE=1 does the same
    #[arg(long, global = true)]
    pub offline: bool,
    /// Threads to compute with [default: one per core]
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer a question from documents, with citations
    Ask(Ask),
    /// Read documents and conversations into a corpus and memorise them
    Ingest(Ingest),
    /// List, show and remove corpora
    Corpus {
        #[command(subcommand)]
        command: Corpus,
    },
    /// List, fetch, check and remove models
    Models {
        #[command(subcommand)]
        command: Models,
    },
    /// Print the text of a PDF; memlocal runs itself so, because PDF readers can hang
    #[command(hide = true)]
    PdfText { path: PathBuf },
}

/// Which models do the work.
#[derive(Debug, Clone, clap::Args)]
pub struct ModelChoice {
    /// Language model: a name from `memlocal models list`, a .gguf file, or a folder with safetensors
    #[arg(long, default_value = "smollm2-135m-instruct", value_name = "NAME|PATH")]
    pub model: String,
    /// Another model for the memorizer, which writes abstracts
    #[arg(long, value_name = "NAME|PATH")]
    pub memorizer: Option<String>,
    /// Another model for the researcher, which plans, integrates and checks
    #[arg(long, value_name = "NAME|PATH")]
    pub researcher: Option<String>,
    /// Embedding model
    #[arg(long, default_value = "all-minilm-l6-v2", value_name = "NAME|PATH")]
    pub embedder: String,
}

/// How the method works.
#[derive(Debug, Clone, clap::Args)]
pub struct MethodChoice {
    /// gam (deep research), rag (nearest pages, one call) or direct (whole text, one call)
    #[arg(long, default_value_t = Method::Gam)]
    pub method: Method,
    /// Order of prompt parts: shared-first (fast) or paper (as printed)
    #[arg(long, default_value_t = Layout::SharedFirst)]
    pub layout: Layout,
    /// Tokens of a page [default: a sixteenth of the model's context, 2048 at most]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub page_tokens: Option<usize>,
    /// Temperature of sampling; 0 always takes the likeliest token
    #[arg(long, default_value_t = 0.3, value_name = "T")]
    pub temperature: f32,
    /// Seed of sampling: the same seed gives the same text
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}

#[derive(Debug, clap::Args)]
pub struct Ask {
    /// The question
    pub question: String,
    /// Corpus to ask, made by `memlocal ingest`
    #[arg(long, value_name = "NAME", required_unless_present = "docs", conflicts_with = "docs")]
    pub corpus: Option<String>,
    /// Files and folders to ask instead; what is memorised of them is kept for the next time
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub docs: Vec<PathBuf>,
    #[command(flatten)]
    pub method: MethodChoice,
    #[command(flatten)]
    pub models: ModelChoice,
    /// Rounds of research
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = at_least_one)]
    pub max_iterations: usize,
    /// Pages that each search tool may bring
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = at_least_one)]
    pub k: usize,
    /// What research hands to the answer: integration, pages or extraction
    #[arg(long, default_value_t = OutputForm::Integration)]
    pub output: OutputForm,
    /// Tokens of retrieved pages in one prompt [default: half of the model's context]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub evidence_tokens: Option<usize>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Write every call and search to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Ingest {
    /// Files and folders (.txt .md .html .pdf .docx .epub .json .jsonl); without any, what was interrupted is finished
    pub paths: Vec<PathBuf>,
    /// Corpus to put them in; made if it does not exist
    #[arg(long, value_name = "NAME")]
    pub corpus: String,
    #[command(flatten)]
    pub method: MethodChoice,
    #[command(flatten)]
    pub models: ModelChoice,
    /// Write every call to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Corpus {
    /// List all corpora
    List,
    /// Show the documents of a corpus
    Show {
        name: String,
        /// Show every page with its abstract
        #[arg(long)]
        pages: bool,
        /// Print the text of one document, to which citations refer
        #[arg(long, value_name = "PATH", conflicts_with = "pages")]
        text: Option<PathBuf>,
    },
    /// Remove a corpus
    Rm { name: String },
}

#[derive(Debug, Subcommand)]
pub enum Models {
    /// List known models and which of them are here
    List,
    /// Show what is known of a model
    Show { name: String },
    /// Fetch a model
    Pull {
        name: String,
        /// Take it from this file or folder instead
        #[arg(long, value_name = "PATH")]
        from: Option<PathBuf>,
    },
    /// Print where a model's files are
    Path { name: String },
    /// Compute all digests of a model again
    Verify { name: String },
    /// Remove a model
    Rm { name: String },
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be 1 or more".into()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}
