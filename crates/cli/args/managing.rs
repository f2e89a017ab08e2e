//! The commands that manage corpora, models, bundles and keys.

#![allow(rustdoc::bare_urls, reason = "comments of flags are the help that the terminal shows")]

use std::path::PathBuf;

use clap::Subcommand;
use launch::flags::{AdapterFlag, DEFAULT_EMBEDDER, DEFAULT_MODEL, MODELS_HEADING, ModelFlags, bundled_adapter, bytes};
use memory::graph_view::Format;
use memory::{Method, methods};

#[derive(Debug, Subcommand)]
pub enum Corpus {
    /// List all corpora
    List {
        /// Print one JSON object instead of a table: the fields of GET /v1/corpora
        #[arg(long)]
        json: bool,
    },
    /// Show the documents of a corpus
    Show {
        /// The corpus
        name: String,
        /// Show every page with its abstract
        #[arg(long)]
        pages: bool,
        /// Print the text of one document, to which citations refer
        #[arg(long, value_name = "PATH", conflicts_with = "pages")]
        text: Option<PathBuf>,
        /// Print one JSON object instead: the fields of GET /v1/corpora/NAME/documents, and of /documents/ID for --text
        #[arg(long)]
        json: bool,
    },
    /// Print a graph that mindgraph has built
    Graph {
        /// The corpus
        name: String,
        /// json, graphml or dot
        #[arg(long, default_value_t = Format::Json, value_name = "FORM")]
        format: Format,
        /// The question that it was built for [default: any, as with --focus none]
        #[arg(long, value_name = "QUESTION")]
        question: Option<String>,
    },
    /// Check a corpus for damage; an error names the first damaged part
    Check {
        /// The corpus
        name: String,
    },
    /// Repair a damaged corpus with everything that can still be read, and list what is lost
    Repair {
        /// The corpus
        name: String,
    },
    /// Copy a corpus to a new file, also while a server uses it
    Backup {
        /// The corpus
        name: String,
        /// The file, which must not exist yet
        file: PathBuf,
    },
    /// Make a new corpus from the file of a backup
    Restore {
        /// The file
        file: PathBuf,
        /// The name of the new corpus
        name: String,
    },
    /// Remove a corpus with everything that was made from it and all uploads to it
    Rm {
        /// The corpus
        name: String,
        /// Do not ask for confirmation; needed where there is no terminal to ask at
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Methods {
    /// List all methods
    List,
    /// Say what a method does, and where it departs from its paper
    Show {
        /// Its name
        #[arg(value_parser = methods::find)]
        name: &'static dyn Method,
    },
}

#[derive(Debug, Subcommand)]
pub enum Models {
    /// List known models and which of them are installed
    List {
        /// Print one JSON object instead of a table: the fields of GET /v1/shelf
        #[arg(long)]
        json: bool,
    },
    /// Show what is known of a model
    Show(Model),
    /// Fetch a model
    Pull {
        #[command(flatten)]
        model: Model,
        /// Copy it from this file or folder instead
        #[arg(long, value_name = "PATH")]
        from: Option<PathBuf>,
    },
    /// Show how much memory a model needs and whether it fits, without fetching it; with --gpu N on an NVIDIA GPU
    Fit {
        /// A name from `memlocal models list`, with or without `:variant`, hf:OWNER/REPO if it is here, or a path
        #[arg(value_name = "NAME|PATH")]
        model: String,
        /// Memory that is free there, such as 12GiB or 16GB, with commas for several GPUs [default: what is free on this machine]
        #[arg(long, value_name = "SIZE", value_parser = bytes, value_delimiter = ',')]
        memory: Vec<u64>,
        /// Memory that is free on the CPU beside GPUs [default: what is free on this machine]
        #[arg(long, value_name = "SIZE", value_parser = bytes)]
        cpu_memory: Option<u64>,
        /// Embedding model beside it
        #[arg(long, default_value = DEFAULT_EMBEDDER, value_name = "NAME|PATH")]
        embedder: String,
    },
    /// Print where a model's files are
    Path(Model),
    /// Compute all digests of a model again
    Verify(Model),
    /// Remove a model
    Rm(Model),
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bundle {
    #[command(subcommand)]
    pub command: Option<BundleCommand>,
    /// Language model that the file answers with; MODEL+ADAPTER runs it with an adapter
    #[arg(long, default_value = DEFAULT_MODEL, value_name = "NAME|PATH", env = "MEMLOCAL_MODEL", help_heading = MODELS_HEADING)]
    pub model: String,
    /// Embedding model
    #[arg(long, default_value = DEFAULT_EMBEDDER, value_name = "NAME|PATH", help_heading = MODELS_HEADING)]
    pub embedder: String,
    /// LoRA adapter, once for each
    #[arg(long = "adapter", value_name = "NAME=PATH|none", value_parser = bundled_adapter, help_heading = MODELS_HEADING)]
    pub adapters: Vec<AdapterFlag>,
    /// Corpus, once for each; it can be asked, not changed
    #[arg(long, value_name = "NAME")]
    pub corpus: Vec<String>,
    /// The file, which must not exist yet
    #[arg(short, long, value_name = "FILE", required = true)]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum BundleCommand {
    /// List contents, licences and digests of a bundle, and check the digests
    Show {
        /// The bundle
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub struct Model {
    /// A name from `memlocal models list`, with or without `:variant`, or `hf:OWNER/REPO[:FILE|QUANT][@REVISION]`
    pub name: String,
}

#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub models: ModelFlags,
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make a key for a new holder, who sees their own corpora only
    Add {
        /// The holder: 1 to 64 of a-z, 0-9, `.`, `_` and `-`
        name: String,
        /// File of API keys [default: `keys` in the data folder]
        #[arg(long, value_name = "FILE", env = "MEMLOCAL_KEYS")]
        keys: Option<PathBuf>,
    },
    /// List the holders of keys
    List {
        /// File of API keys [default: `keys` in the data folder]
        #[arg(long, value_name = "FILE", env = "MEMLOCAL_KEYS")]
        keys: Option<PathBuf>,
    },
    /// Remove the key of a holder, whose corpora stay
    Rm {
        /// The holder
        name: String,
        /// File of API keys [default: `keys` in the data folder]
        #[arg(long, value_name = "FILE", env = "MEMLOCAL_KEYS")]
        keys: Option<PathBuf>,
    },
}
