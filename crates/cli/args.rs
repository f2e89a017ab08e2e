//! The command line of `memlocal`.

#![allow(rustdoc::bare_urls, reason = "comments of flags are the help that the terminal shows")]

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use launch::flags::{
    AdapterFlag, DEFAULT_EMBEDDER, DEFAULT_MODEL, EndpointFlags, GlobalFlags, ModelFlags, STYLES, at_least_one, bytes,
    temperature,
};
use memory::graph_view::Format;
use memory::{Layout, Method, Profile, methods};

use server::KeepAlive;

use crate::method_options::{AskOptions, PrepareOptions};

const AFTER_HELP: &str = "\
Examples:
  memlocal ask \"Who is Della?\" --docs story.txt     read, memorise and answer at once
  memlocal ingest notes/ mail.jsonl --corpus work   memorise ahead of time
  memlocal ask \"What did we decide?\" --corpus work

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some inputs were skipped, 130 interrupted.";

/// A long memory over private documents and conversations, on your own machine.
#[derive(Debug, Parser)]
#[command(version, styles = STYLES, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub global: GlobalFlags,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer a question from documents, with citations
    Ask(Ask),
    /// Read documents and conversations into a corpus and memorise them
    Ingest(Ingest),
    /// Train the model to read short answers out of one corpus, and keep the adapter beside it
    ///
    /// The model writes questions whose answers are spans of the documents. Those that the model, shown the text alone, does
    /// not answer with the same span are dropped. A LoRA adapter is trained on the rest, and kept if it answers questions that
    /// were held out no worse. Nothing else trains anything. Time and memory are printed before it begins; a run that was
    /// stopped goes on with the same command. The adapter is used with --adapter corpus, and is deleted with the corpus and
    /// when a document that it has learned from is replaced or removed.
    Train(Train),
    /// List, show and remove corpora
    #[command(arg_required_else_help = true)]
    Corpus {
        #[command(subcommand)]
        command: Corpus,
    },
    /// List the methods that answer questions, and say what each does
    #[command(arg_required_else_help = true)]
    Methods {
        #[command(subcommand)]
        command: Methods,
    },
    /// List, fetch, check and remove models
    #[command(arg_required_else_help = true)]
    Models {
        #[command(subcommand)]
        command: Models,
    },
    /// Put models and corpora behind a copy of this program: one file that needs nothing else
    Bundle(Bundle),
    /// Answer other programs and people: OpenAI's API, memlocal's own, MCP, and a page for the browser
    Serve(Serve),
    /// Speak MCP over standard input and output
    Mcp(Mcp),
    /// Check processor, device, memory, data folder, models and network, and report problems
    Doctor(Doctor),
    /// Make, list and remove API keys, which a server asks for where there are any
    #[command(arg_required_else_help = true)]
    Keys {
        #[command(subcommand)]
        command: Keys,
    },
    /// Print what a shell needs to complete commands and flags
    Completions {
        /// bash, zsh or fish
        shell: Shell,
    },
    /// Write man pages to a folder
    Man {
        /// The folder; made if it does not exist
        folder: PathBuf,
    },
    /// Measure answers, retrieval and speed; starts the program memlocal-bench with these arguments
    #[command(disable_help_flag = true)]
    Bench {
        /// Arguments of memlocal-bench; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Print the text of a PDF; memlocal runs itself so, because PDF readers can hang
    #[command(hide = true)]
    PdfText { path: PathBuf },
}

#[derive(Debug, clap::Args)]
pub struct Ask {
    /// The question
    #[arg(default_value = "", hide_default_value = true)]
    pub question: String,
    /// An answer to choose from, once for each; only the call that answers is shown them
    #[arg(long = "option", value_name = "TEXT")]
    pub options: Vec<String>,
    #[command(flatten)]
    pub documents: Documents,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Write every call and search to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print on standard error which method answers, and why
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub cache: CacheChoice,
    /// Ask by several methods, one after the other, and print one table
    #[arg(long, requires = "methods", conflicts_with_all = ["trace", "explain", "explain_cache", "keep_prefixes", "method"])]
    pub compare: bool,
    /// Methods to compare: all, or names
    #[arg(long, value_name = "all|NAME,...", requires = "compare")]
    pub methods: Option<MethodList>,
    #[command(flatten)]
    pub models: ModelFlags,
    #[command(flatten)]
    pub engine: EndpointFlags,
    #[command(flatten)]
    pub method: MethodChoice,
    #[command(flatten)]
    pub search: SearchChoice,
}

/// What is done with what was computed of prompts.
#[derive(Debug, clap::Args)]
pub struct CacheChoice {
    /// Show what was cached of every prompt, and where it left what was
    #[arg(long)]
    pub explain_cache: bool,
    /// Keep the keys and values of what prompts begin with beside the corpus: the next question on it starts sooner, for
    /// the disk space of a few hundred MB
    #[arg(long)]
    pub keep_prefixes: bool,
}

/// Several methods by name.
#[derive(Debug, Clone)]
pub struct MethodList(pub Vec<&'static dyn Method>);

impl FromStr for MethodList {
    type Err = String;

    fn from_str(names: &str) -> Result<MethodList, String> {
        match names {
            "all" => Ok(MethodList(methods::concrete())),
            names => names.split(',').map(str::parse).collect::<Result<_, _>>().map(MethodList),
        }
    }
}

/// What a question is asked of.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Documents {
    /// Corpus to ask, made by `memlocal ingest`
    #[arg(long, value_name = "NAME")]
    pub corpus: Option<String>,
    /// Files and folders to ask instead; what is memorised of them is kept for the next time
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub docs: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Ingest {
    /// Files and folders: documents, tables, mail, chats, source code; without any, what was interrupted is finished
    pub paths: Vec<PathBuf>,
    /// Read only the files of folders that match, such as '*.md' or 'notes/**'; may be given several times
    #[arg(long, value_name = "GLOB", requires = "paths")]
    pub include: Vec<String>,
    /// Leave out files and folders that match; may be given several times
    #[arg(long, value_name = "GLOB", requires = "paths")]
    pub exclude: Vec<String>,
    /// Go on reading what is added or changed, until Ctrl-C
    #[arg(long, requires = "paths")]
    pub watch: bool,
    /// Remove documents of these folders whose files are gone
    #[arg(long, requires = "paths")]
    pub delete: bool,
    /// Corpus to put them in; made if it does not exist
    #[arg(long, value_name = "NAME")]
    pub corpus: String,
    /// Write every call to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub models: ModelFlags,
    #[command(flatten)]
    pub engine: EndpointFlags,
    #[command(flatten)]
    pub method: MethodChoice,
}

/// How the method works.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Method")]
pub struct MethodChoice {
    /// How questions are answered; `memlocal methods list` describes the methods
    #[arg(long, default_value_t = methods::DEFAULT, value_parser = methods::find)]
    pub method: &'static dyn Method,
    /// Form of prompts: paper (in full) or small (for models below 3 billion parameters) [default: by each model's size]
    #[arg(long)]
    pub profile: Option<Profile>,
    /// Order of prompt parts: shared-first (fast) or paper (as printed)
    #[arg(long, default_value_t = Layout::SharedFirst)]
    pub layout: Layout,
    /// Tokens of a page; documents that are here already are cut anew [default: a sixteenth of the model's context,
    /// 2048 at most]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub page_tokens: Option<usize>,
    /// Temperature of sampling; 0 is greedy
    #[arg(long, default_value_t = 0.3, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    pub temperature: f32,
    /// Seed of sampling: the same seed gives the same text
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    #[command(flatten)]
    pub options: PrepareOptions,
}

/// How much is searched and read.
#[derive(Debug, Clone, clap::Args)]
pub struct SearchChoice {
    #[command(flatten)]
    pub options: AskOptions,
    /// Tokens of retrieved pages in one prompt [default: half of the model's context]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub evidence_tokens: Option<usize>,
}

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
    /// Do not ask for confirmation; needed where there is no terminal to ask at
    #[arg(long)]
    pub yes: bool,
    /// Copy the training examples to this file: they hold text of the documents
    #[arg(long, value_name = "FILE")]
    pub keep_data: Option<PathBuf>,
    #[command(flatten)]
    pub models: ModelFlags,
}

#[derive(Debug, Subcommand)]
pub enum Corpus {
    /// List all corpora
    List,
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
    /// Check that everything in a corpus is what was put in; an error names the first damage
    Check {
        /// The corpus
        name: String,
    },
    /// Make a damaged corpus sound with all that can still be read; says what is lost
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
    /// List known models and which of them are here
    List,
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
    /// Show how much device memory a model needs and whether it fits, without fetching it. --gpu N: an NVIDIA GPU
    Fit {
        /// A name from `memlocal models list`, with or without `:variant`, hf:OWNER/REPO if it is here, or a path
        #[arg(value_name = "NAME|PATH")]
        model: String,
        /// Memory that is free there, such as 12GiB or 16GB [default: what is free on this machine]
        #[arg(long, value_name = "SIZE", value_parser = bytes)]
        memory: Option<u64>,
        /// Embedding model beside it
        #[arg(long, default_value = "all-minilm-l6-v2", value_name = "NAME|PATH")]
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
    #[arg(long, default_value = DEFAULT_MODEL, value_name = "NAME|PATH")]
    pub model: String,
    /// Embedding model
    #[arg(long, default_value = DEFAULT_EMBEDDER, value_name = "NAME|PATH")]
    pub embedder: String,
    /// LoRA adapter, once for each
    #[arg(long = "adapter", value_name = "NAME=PATH|none")]
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

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Address to listen on; one that can be reached from elsewhere needs keys
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS", env = "MEMLOCAL_HOST")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes any that is free
    #[arg(long, default_value_t = 8420, value_name = "N", env = "MEMLOCAL_PORT")]
    pub port: u16,
    /// File of API keys [default: `keys` in the data folder, if it is there]
    #[arg(long, value_name = "FILE", env = "MEMLOCAL_KEYS")]
    pub keys: Option<PathBuf>,
    /// Holder of a key who may see counts of the whole server at /metrics and /v1/engine; the others see their own
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
    /// Maximum concurrent requests that use models; further ones are refused with status 429
    #[arg(long, default_value_t = 128, value_name = "N", value_parser = at_least_one)]
    pub max_requests: usize,
    /// POST requests per minute per key, or per address if no keys are required
    /// [default: no limit]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// Maximum bytes of a JSON body
    #[arg(long, default_value_t = 8 << 20, value_name = "BYTES", value_parser = at_least_one)]
    pub max_body: usize,
    /// Maximum bytes of an upload, all its files together
    #[arg(long, default_value_t = 256 << 20, value_name = "BYTES", value_parser = at_least_one)]
    pub max_upload: usize,
    /// Allow requests from web pages of this origin, such as https://chat.example; may be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allow_origins: Vec<String>,
    /// Write prompts to the log, which contains none of their text otherwise
    #[arg(long)]
    pub log_prompts: bool,
    /// Deadline of a request in seconds
    #[arg(long, default_value_t = 1800, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub deadline: u64,
    /// Seconds that a question waits until its corpus is prepared, at most half of the deadline; then it is answered from what
    /// is ready
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub prepare_wait: u64,
    /// Keep neither threads (questions with their answers) nor responses of /v1/responses
    #[arg(long)]
    pub no_threads: bool,
    /// Write logs as JSON objects
    #[arg(long)]
    pub log_json: bool,
    /// Keep the keys and values of what questions on a corpus begin with beside it: the first question after a restart
    /// starts sooner, for the disk space of a few hundred MB
    #[arg(long)]
    pub keep_prefixes: bool,
    /// Folder of benchmark runs, whose reports the page shows
    #[arg(long, value_name = "FOLDER")]
    pub bench_runs: Option<PathBuf>,
    /// When a request may have a model loaded that is on this disk, and idle ones unloaded for it: auto (the server listens
    /// on loopback and requires no keys), always or never; without a value always
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "always")]
    pub load_models: LoadChoice,
    /// How long a model that a request had loaded stays after its last request, such as 90, 5m or 1h30m; 0 unloads it at once,
    /// -1 keeps it
    #[arg(long, value_name = "TIME", default_value = "5m", allow_hyphen_values = true)]
    pub keep_alive: KeepAlive,
    /// GGUF file or folder with safetensors that requests may name, once for each
    #[arg(long = "model-file", value_name = "NAME=PATH", value_parser = named_path)]
    pub model_files: Vec<(String, PathBuf)>,
    #[command(flatten)]
    pub models: ModelFlags,
    #[command(flatten)]
    pub engine: EndpointFlags,
}

/// When models are loaded on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LoadChoice {
    /// On loopback without keys.
    Auto,
    Always,
    Never,
}

/// Parses a name and a path.
fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("it must be NAME=PATH")?;
    let path = launch::absolute(std::path::Path::new(path));
    if name.is_empty() || !path.exists() {
        return Err(format!("there is no file {}", path.display()));
    }
    Ok((name.to_owned(), path))
}

#[derive(Debug, clap::Args)]
pub struct Mcp {
    #[command(flatten)]
    pub models: ModelFlags,
    #[command(flatten)]
    pub engine: EndpointFlags,
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
    /// Make a key for a new holder, who sees corpora of their own only
    Add {
        /// The holder: 1 to 64 of a-z, 0-9, `.`, `_` and `-`
        name: String,
        /// File of API keys [default: `keys` in the data folder]
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
    },
    /// List the holders of keys
    List {
        /// File of API keys [default: `keys` in the data folder]
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
    },
    /// Take a holder's key away; their corpora stay
    Rm {
        /// The holder
        name: String,
        /// File of API keys [default: `keys` in the data folder]
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
    },
}

/// The command line. Commands that compute nothing do not list the flags of processors and caches.
pub fn command() -> clap::Command {
    const IDLE: [&str; 5] = ["keys", "corpus", "methods", "completions", "man"];
    const COMPUTING: [&str; 6] = ["gpu", "cpu", "backend", "threads", "kv_tokens", "draft_tokens"];
    let mut command = Args::command();
    let flags: Vec<clap::Arg> =
        command.get_arguments().filter(|flag| COMPUTING.contains(&flag.get_id().as_str())).cloned().collect();
    // A subcommand that defines a global flag itself does not inherit it.
    for idle in IDLE {
        command = command.mut_subcommand(idle, |idle| idle.args(flags.iter().map(|flag| flag.clone().hide(true))));
    }
    command
}
