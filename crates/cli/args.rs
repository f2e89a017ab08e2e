//! What can be typed.

use std::fmt;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use eval::Suite;
use eval::qa::QaSuite;
use eval::retrieval::Tool;
use eval::score::Scorer;
use eval::speed::{Preset, SpeedSuite};
use memory::comorag::Knowledge;
use memory::drawing::Form;
use memory::mindgraph::Focus;
use memory::{Layout, MemcotStore, Method, OutputForm};
use models::Quantisation;
use store::Bm25;

const STYLES: Styles = Styles::styled().header(AnsiColor::Yellow.on_default()).literal(AnsiColor::Green.on_default());

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
    pub machine: Machine,
}

/// Where flags of models stand in the help.
pub const MODELS_HEADING: &str = "Models";

/// What every command may be told.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "This machine")]
pub struct Machine {
    /// Folder for models and corpora [default: MEMLOCAL_HOME, or where the platform puts data]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// Open no network connection at all; HF_HUB_OFFLINE=1 does the same
    #[arg(long, global = true)]
    pub offline: bool,
    /// PostgreSQL with pgvector that keeps corpora, texts and vectors, for all processes that name the same one:
    /// postgres://USER:PASSWORD@HOST/DATABASE. The data folder holds copies, brought up to date when a corpus is opened
    #[arg(long, global = true, value_name = "URL", env = "MEMLOCAL_VECTORS", hide_env_values = true)]
    pub vectors: Option<String>,
    /// File of settings [default: `config.toml` in the data folder, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "MEMLOCAL_CONFIG")]
    pub config: Option<PathBuf>,
    /// GPU to compute on: its number, auto (one if there is one) or none
    #[arg(long, global = true, value_name = "N|auto", default_value_t = Gpu::None, env = "MEMLOCAL_GPU")]
    gpu: Gpu,
    /// Compute on the CPU, whatever else is set; --gpu none
    #[arg(long, global = true)]
    cpu: bool,
    /// Threads to compute with [default: one per core]
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Tokens whose keys and values are kept for each language model, prompts that run at once and prefixes that may be
    /// asked about again [default: the model's context, 16384 at least]
    #[arg(long, global = true, value_name = "N", value_parser = at_least_one)]
    pub kv_tokens: Option<usize>,
    /// Tokens of answers that one step computes on a guess, over all calls that run; 0 guesses nothing. Answers are the same
    #[arg(long, global = true, value_name = "N", default_value_t = engine::Config::default().most_guesses)]
    pub guesses: usize,
}

impl Machine {
    /// The GPU that was asked for.
    pub fn gpu(&self) -> Gpu {
        if self.cpu { Gpu::None } else { self.gpu }
    }
}

/// Which GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gpu {
    /// None: the CPU computes.
    None,
    /// One, if there is one.
    Auto,
    /// The one with this number, as the driver counts.
    Number(usize),
}

impl FromStr for Gpu {
    type Err = String;

    fn from_str(name: &str) -> Result<Gpu, String> {
        match name {
            "none" => Ok(Gpu::None),
            "auto" => Ok(Gpu::Auto),
            number => number.parse().map(Gpu::Number).map_err(|_| "it must be a number, auto or none".into()),
        }
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gpu::None => f.write_str("none"),
            Gpu::Auto => f.write_str("auto"),
            Gpu::Number(number) => number.fmt(f),
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer a question from documents, with citations
    Ask(Ask),
    /// Read documents and conversations into a corpus and memorise them
    Ingest(Ingest),
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
    /// Answer other programs and people: OpenAI's API, memlocal's own, MCP, and a page for the browser
    Serve(Serve),
    /// Speak MCP over standard input and output
    Mcp(Mcp),
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
    /// Measure on published data sets, with raw results and where they come from
    #[command(arg_required_else_help = true)]
    Bench {
        #[command(subcommand)]
        command: Bench,
    },
    /// Print the text of a PDF; memlocal runs itself so, because PDF readers can hang
    #[command(hide = true)]
    PdfText { path: PathBuf },
}

#[derive(Debug, clap::Args)]
pub struct Ask {
    /// The question
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
    #[command(flatten)]
    pub cache: CacheChoice,
    /// Ask by several methods, one after the other, and print one table
    #[arg(long, requires = "methods", conflicts_with_all = ["trace", "explain_cache", "keep_prefixes", "method"])]
    pub compare: bool,
    /// Methods to compare: all, or names
    #[arg(long, value_name = "all|NAME,...", requires = "compare")]
    pub methods: Option<MethodList>,
    #[command(flatten)]
    pub models: ModelChoice,
    #[command(flatten)]
    pub engine: EngineChoice,
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
pub struct MethodList(pub Vec<Method>);

impl FromStr for MethodList {
    type Err = String;

    fn from_str(names: &str) -> Result<MethodList, String> {
        match names {
            "all" => Ok(MethodList(Method::ALL.to_vec())),
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
    /// Files and folders (.txt .md .html .pdf .docx .epub .json .jsonl); without any, what was interrupted is finished
    pub paths: Vec<PathBuf>,
    /// Corpus to put them in; made if it does not exist
    #[arg(long, value_name = "NAME")]
    pub corpus: String,
    /// Write every call to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub models: ModelChoice,
    #[command(flatten)]
    pub engine: EngineChoice,
    #[command(flatten)]
    pub method: MethodChoice,
}

/// Which models do the work.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = MODELS_HEADING)]
pub struct ModelChoice {
    /// Language model: a name from `memlocal models list`, a .gguf file, or a folder with safetensors
    #[arg(long, default_value = "smollm2-135m-instruct", value_name = "NAME|PATH", env = "MEMLOCAL_MODEL")]
    pub model: String,
    /// Another model for the memorizer, which writes abstracts
    #[arg(long, value_name = "NAME|PATH")]
    pub memorizer: Option<String>,
    /// Another model for the researcher, which plans and integrates
    #[arg(long, value_name = "NAME|PATH")]
    pub researcher: Option<String>,
    /// Another model for the judge, which checks what is found [default: the researcher's]
    #[arg(long, value_name = "NAME|PATH")]
    pub judge: Option<String>,
    /// Another model for the builder, which extracts facts and graphs [default: the researcher's]
    #[arg(long, value_name = "NAME|PATH")]
    pub builder: Option<String>,
    /// Make dense weights (bf16, f16, f32) smaller while they are loaded: q8_0 or q4_k
    #[arg(long, value_name = "FORMAT")]
    pub quantise: Option<Quantisation>,
    /// Reach FACTOR times the context that the model was made for (YaRN); short texts change a little too
    #[arg(long, value_name = "FACTOR")]
    pub yarn: Option<f32>,
    /// Embedding model
    #[arg(long, default_value = "all-minilm-l6-v2", value_name = "NAME|PATH")]
    pub embedder: String,
    /// Make the embedding model smaller and faster: q8_0. Its vectors are slightly others
    #[arg(long, value_name = "FORMAT")]
    pub quantise_embedder: Option<Quantisation>,
}

/// Whose models answer calls, where they are not this machine's.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "An engine elsewhere")]
pub struct EngineChoice {
    /// OpenAI-compatible endpoint on your own network whose model answers every call, http://HOST:PORT/v1 (vLLM, SGLang,
    /// another memlocal); vectors are still made here. MEMLOCAL_ENGINE_KEY holds its key, if it needs one
    #[arg(long, value_name = "URL", conflicts_with_all = ["model", "memorizer", "researcher", "judge", "builder", "quantise", "yarn"])]
    pub engine: Option<String>,
    /// Its model [default: the first that it lists]
    #[arg(long, value_name = "NAME", requires = "engine")]
    pub engine_model: Option<String>,
    /// Tokens that prompt and answer may have together there [default: what it says]
    #[arg(long, value_name = "N", requires = "engine", value_parser = at_least_one)]
    pub engine_context: Option<usize>,
}

/// How the method works.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Method")]
pub struct MethodChoice {
    /// gam (deep research), memcot (search after search with a short-term memory), comorag (probing three layers of
    /// knowledge), mindgraph (a concept graph built for the question), rag (nearest pages, one call) or direct (whole
    /// text, one call)
    #[arg(long, default_value_t = Method::Gam)]
    pub method: Method,
    /// Layers of comorag: veridical, semantic, episodic [default: all]
    #[arg(long, value_name = "LAYER,...", value_delimiter = ',')]
    pub layers: Vec<Knowledge>,
    /// Order of prompt parts: shared-first (fast) or paper (as printed)
    #[arg(long, default_value_t = Layout::SharedFirst)]
    pub layout: Layout,
    /// Tokens of a page; documents that are here already are cut anew [default: a sixteenth of the model's context,
    /// 2048 at most]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub page_tokens: Option<usize>,
    /// Where memcot searches: hybrid (by words and by meaning) or lightrag (over a graph, which takes two calls for each
    /// turn of a conversation or 200 tokens of a text)
    #[arg(long, default_value_t = MemcotStore::Hybrid, value_name = "STORE")]
    pub memcot_store: MemcotStore,
    /// What mindgraph builds its graph for: question (the one that is asked), none (any question, built by ingest) or set
    /// (all questions of --questions, in one reading)
    #[arg(long, default_value_t = Focus::Question, value_name = "FOCUS")]
    pub focus: Focus,
    /// A file with a question a line, for which mindgraph builds graphs ahead of time
    #[arg(long, value_name = "FILE", required_if_eq("focus", "set"))]
    pub questions: Option<PathBuf>,
    /// Temperature of sampling; 0 always takes the likeliest token
    #[arg(long, default_value_t = 0.3, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    pub temperature: f32,
    /// Seed of sampling: the same seed gives the same text
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}

/// How much is searched and read.
#[derive(Debug, Clone, clap::Args)]
pub struct SearchChoice {
    /// Rounds of research, search, probing or tools [default: what each method's paper says: gam 3, memcot 8, comorag 5,
    /// mindgraph 40]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_iterations: Option<usize>,
    /// What each search may bring to gam, rag and memcot [default: what each method's paper says: 5 pages, for memcot 10
    /// turns]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub k: Option<usize>,
    /// Turns on either side of what memcot finds that it reads too (the paper: 4, or 15 for many short sessions)
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub window: usize,
    /// What research hands to the answer: integration, pages or extraction
    #[arg(long, default_value_t = OutputForm::Integration, value_name = "FORM")]
    pub output: OutputForm,
    /// Tokens of retrieved pages in one prompt [default: half of the model's context]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub evidence_tokens: Option<usize>,
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
        #[arg(long, default_value_t = Form::Json, value_name = "FORM")]
        format: Form,
        /// The question that it was built for [default: any, as with --focus none]
        #[arg(long, value_name = "QUESTION")]
        question: Option<String>,
    },
    /// Remove a corpus
    Rm {
        /// The corpus
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Methods {
    /// List all methods
    List,
    /// Say what a method does, and where it departs from its paper
    Show {
        /// Its name
        name: Method,
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
    /// Print where a model's files are
    Path(Model),
    /// Compute all digests of a model again
    Verify(Model),
    /// Remove a model
    Rm(Model),
}

#[derive(Debug, clap::Args)]
pub struct Model {
    /// A name from `memlocal models list`, with or without `:variant`
    pub name: String,
}

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
    /// Requests that models work on at once; the next are told to come again
    #[arg(long, default_value_t = 128, value_name = "N", value_parser = at_least_one)]
    pub max_requests: usize,
    /// Requests in a minute that each holder of a key may send, or each address where no keys are asked for; counted are
    /// those that ask for work [default: any number]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// Bytes that a JSON body may have
    #[arg(long, default_value_t = 8 << 20, value_name = "BYTES", value_parser = at_least_one)]
    pub max_body: usize,
    /// Bytes that the files of an upload may have together
    #[arg(long, default_value_t = 256 << 20, value_name = "BYTES", value_parser = at_least_one)]
    pub max_upload: usize,
    /// Let the web pages of this origin ask, such as https://chat.example; may be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allow_origins: Vec<String>,
    /// Write prompts into the logs, which hold no word of them otherwise
    #[arg(long)]
    pub log_prompts: bool,
    /// Seconds after which a request is given up
    #[arg(long, default_value_t = 1800, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub deadline: u64,
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
    #[command(flatten)]
    pub models: ModelChoice,
    #[command(flatten)]
    pub engine: EngineChoice,
}

#[derive(Debug, clap::Args)]
pub struct Mcp {
    #[command(flatten)]
    pub models: ModelChoice,
    #[command(flatten)]
    pub engine: EngineChoice,
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

#[derive(Debug, Subcommand)]
pub enum Bench {
    /// How well search tools find the passages that answer questions
    Retrieval(Retrieval),
    /// How fast the engine does the work of the methods, and how fast a server does the same
    Engine(Speed),
    /// How fast a server answers its clients, beside another server; or whether it holds under a load
    Serve(ServeBench),
    /// Whether the replies of every method's agents have the form that was asked for
    Forms(Forms),
    /// How many questions methods and models answer, beside the papers' numbers
    Qa(Box<Qa>),
    /// Score the answers of a run again and write its report anew; no model is needed
    Rescore {
        /// The folder of the run
        run: PathBuf,
    },
    /// Say whether two runs differ, by a paired bootstrap
    Compare {
        /// The folder of a run
        a: PathBuf,
        /// The folder of another; the same one to compare its methods and models with each other
        b: PathBuf,
    },
    /// Draw score and evidence recall of several runs of `bench qa` against the rounds, k or window that they differ in
    Plot {
        /// The folders of the runs
        #[arg(required = true, num_args = 2..)]
        runs: Vec<PathBuf>,
        /// Where the pictures go
        #[arg(long, value_name = "FOLDER", default_value = "plots")]
        out: PathBuf,
    },
    /// Copy a run of `bench qa` without the texts of its data, which may not be yours to publish: no transcript, and results
    /// without questions, gold answers and quotes
    Publish {
        /// The folder of the run
        run: PathBuf,
        /// A new folder
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Answer all questions of a run again from its transcript, with no model, and say whether the answers are the same
    Replay {
        /// The folder of the run
        run: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub struct Forms {
    /// Files and folders on which every method is set to work
    #[arg(long, value_name = "PATH", num_args = 1.., required = true)]
    pub docs: Vec<PathBuf>,
    /// Replies to inspect, at least
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = at_least_one)]
    pub calls: usize,
    #[command(flatten)]
    pub models: ModelChoice,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Go on with the run in FOLDER/forms
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Keep every call, manifest, raw results and report in FOLDER/forms
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Qa {
    /// Data set: locomo, longmemeval, hotpotqa, ruler, narrativeqa, infinitebench, detectiveqa, longbench-v2,
    /// longreason-200, musique or 2wiki [default: the preset's first]
    #[arg(long, value_name = "NAME", required_unless_present = "preset")]
    pub suite: Option<QaSuite>,
    /// Its file or folder, in the form in which it is published; for ruler a folder with ruler/*list.txt and novels/*.txt
    #[arg(long, value_name = "PATH")]
    pub data: PathBuf,
    /// A paper's configuration, which flags override: gam/table1-qwen2.5-14b, memcot/table1-qwen2.5-14b,
    /// memcot/table2-qwen2.5-7b, comorag/table1 or mindgraph/table2
    #[arg(long, value_name = "PAPER/TABLE")]
    pub preset: Option<String>,
    /// Methods, as of `memlocal ask` [default: gam]
    #[arg(long, value_name = "METHOD,...", value_delimiter = ',')]
    pub method: Vec<Method>,
    /// Language models, one after the other [default: smollm2-135m-instruct]
    #[arg(long, value_name = "NAME|PATH,...", value_delimiter = ',')]
    pub model: Vec<String>,
    #[command(flatten)]
    pub engine: EngineChoice,
    /// Another model for the memorizer
    #[arg(long, value_name = "NAME|PATH")]
    pub memorizer: Option<String>,
    /// Another model for the researcher
    #[arg(long, value_name = "NAME|PATH")]
    pub researcher: Option<String>,
    /// Another model for the judge, of methods and of answers [default: the researcher's]
    #[arg(long, value_name = "NAME|PATH")]
    pub judge: Option<String>,
    /// Another model for the builder [default: the researcher's]
    #[arg(long, value_name = "NAME|PATH")]
    pub builder: Option<String>,
    /// Embedding model [default: all-minilm-l6-v2]
    #[arg(long, value_name = "NAME|PATH")]
    pub embedder: Option<String>,
    /// Make dense weights smaller while they are loaded: q8_0 or q4_k
    #[arg(long, value_name = "FORMAT")]
    pub quantise: Option<Quantisation>,
    /// Reach FACTOR times the context that the models were made for (YaRN)
    #[arg(long, value_name = "FACTOR")]
    pub yarn: Option<f32>,
    /// Scorers [default: those that the papers use on the data set]
    #[arg(long, value_name = "SCORER,...", value_delimiter = ',')]
    pub scorers: Vec<Scorer>,
    /// Beginnings of the categories that are asked, or `all` [default: for locomo 1,2,3,4, as in the papers; else all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Beginnings of the ids of the cases that are asked: conversations, stories or samples [default: all]
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub cases: Vec<String>,
    /// Ask only the first N questions
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<usize>,
    /// Ask N questions drawn by the seed
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub sample: Option<usize>,
    /// Seed of sampling and of what is drawn or made [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Order of prompt parts: shared-first or paper [default: shared-first]
    #[arg(long)]
    pub layout: Option<Layout>,
    /// Temperature [default: 0.3]
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub temperature: Option<f32>,
    /// Tokens of a page [default: a sixteenth of the model's context, 2048 at most]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub page_tokens: Option<usize>,
    /// Tokens of retrieved pages in one prompt [default: half of the model's context]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub evidence_tokens: Option<usize>,
    /// What each search may bring [default: what each method's paper says: 5 pages, for memcot 10 turns]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub k: Option<usize>,
    /// Where memcot searches: hybrid or lightrag, as of `memlocal ask` [default: hybrid]
    #[arg(long, value_name = "STORE")]
    pub memcot_store: Option<MemcotStore>,
    /// Layers of comorag: veridical, semantic, episodic [default: all]
    #[arg(long, value_name = "LAYER,...", value_delimiter = ',')]
    pub layers: Vec<Knowledge>,
    /// Turns on either side of what memcot finds that it reads too [default: 4, for longmemeval 15]
    #[arg(long, value_name = "N")]
    pub window: Option<usize>,
    /// Rounds of research, search or probing [default: what each method's paper says: gam 3, memcot 8, comorag 5, mindgraph
    /// 40]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_iterations: Option<usize>,
    /// What research hands to the answer: integration, pages or extraction
    #[arg(long, default_value_t = OutputForm::Integration, value_name = "FORM")]
    pub output: OutputForm,
    /// Questions that are asked at once, of one text or of several, and texts that are prepared at once, so that the engine
    /// can batch. With 1 each method ends before the next begins, and time and memory are told for each by itself
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = at_least_one)]
    pub width: usize,
    /// For ruler: tokens of a sample, question and answer included [default: 8192]
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    pub length: Option<usize>,
    /// For ruler: its tasks by name [default: all thirteen]
    #[arg(long, value_name = "TASK,...", value_delimiter = ',')]
    pub tasks: Vec<String>,
    /// For ruler: samples of each task
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = at_least_one)]
    pub samples: usize,
    /// Go on with the run in the folder
    #[arg(long)]
    pub resume: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Keep everything in FOLDER/qa-SUITE
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Speed {
    /// Kinds of work: prefill, decode, embed, siblings, gam-trace, itl, load, snapshot, ask [default: all that need no further flag]
    #[arg(long, value_name = "SUITE,...", value_delimiter = ',')]
    pub suite: Vec<SpeedSuite>,
    /// Sizes of prompts and batches for a class of machines: laptop (models up to 3B), workstation (up to 14B) or server (up
    /// to 32B)
    #[arg(long, default_value_t = Preset::Workstation, value_name = "CLASS")]
    pub preset: Preset,
    #[command(flatten)]
    pub models: ModelChoice,
    /// LoCoMo's file, for gam-trace
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Questions of gam-trace, which run side by side
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = at_least_one)]
    pub questions: usize,
    /// Documents, for ask
    #[arg(long, value_name = "PATH")]
    pub docs: Option<PathBuf>,
    /// An OpenAI-compatible server with the same model on the same cores, which is given the same work in turns
    #[arg(long, value_name = "URL")]
    pub against: Option<String>,
    /// One with the same embedding model, for embed
    #[arg(long, value_name = "URL")]
    pub embed_against: Option<String>,
    /// The process of the one server that is measured beside, whose memory is then reported too
    #[arg(long, value_name = "PID")]
    pub against_process: Option<u32>,
    /// Measurements of each number, of which the median is reported
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = at_least_one)]
    pub repetitions: usize,
    /// Print a JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
    /// Keep manifest, raw results and report in FOLDER/engine-MODEL
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct ServeBench {
    /// A server with the same model on the same cores, asked the same in turns: http://HOST:PORT
    #[arg(long, value_name = "URL", conflicts_with = "load")]
    pub against: Option<String>,
    /// A memlocal that runs already [default: one is started, and ends with the measurement]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Clients at once [default: 1,8,32; with --load 64]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = at_least_one)]
    pub clients: Vec<usize>,
    /// Seconds for which clients go on asking [default: 20; with --load 120]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Measurements of each number, of which the median is reported
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = at_least_one)]
    pub repetitions: usize,
    /// Many streams at once instead: no error, no lost token, no memory that grows
    #[arg(long)]
    pub load: bool,
    /// Language model of the server that is started
    #[arg(long, default_value = "smollm2-135m-instruct", value_name = "NAME|PATH")]
    pub model: String,
    /// Its embedding model
    #[arg(long, default_value = "all-minilm-l6-v2", value_name = "NAME|PATH")]
    pub embedder: String,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Keep manifest, raw results and summary in FOLDER/serve-MODEL, or FOLDER/load-MODEL
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Retrieval {
    /// Data set: scifact, hotpotqa, musique, 2wiki, locomo or xquad
    #[arg(long, value_name = "NAME")]
    pub suite: Suite,
    /// Its file or folder, in the form in which it is published
    #[arg(long, value_name = "PATH")]
    pub data: PathBuf,
    /// Tools to compare: bm25, bm25-fields (titles and texts apart), dense, sparse and colbert (of embedders that have
    /// such heads), fused (bm25 and dense), fused-sparse (dense and sparse), fused-all (bm25, dense, sparse and colbert)
    /// [default: those with published numbers for the data set, and bm25, dense and fused]
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',')]
    pub tools: Vec<Tool>,
    /// Embedding model of all tools but bm25 and bm25-fields
    #[arg(long, default_value = "all-minilm-l6-v2", value_name = "NAME|PATH")]
    pub embedder: String,
    /// Make the embedding model smaller and faster: q8_0. Its vectors are slightly others
    #[arg(long, value_name = "FORMAT")]
    pub quantise_embedder: Option<Quantisation>,
    /// BM25's parameters: how soon repetitions stop counting, and how much long texts are held back
    #[arg(long, default_value = "0.9,0.4", value_name = "K1,B", value_parser = bm25)]
    pub bm25: Bm25,
    /// Ask only the first N questions
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<usize>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Keep manifest, raw results and report in FOLDER/retrieval-NAME
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be 1 or more".into()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|error| format!("{error}"))?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err("it must be 0 or more".into()) }
}

fn bm25(text: &str) -> Result<Bm25, String> {
    let numbers = text.split_once(',').and_then(|(k1, b)| Some((k1.parse().ok()?, b.parse().ok()?)));
    match numbers {
        Some((k1, b)) if (0.0..1e6).contains(&k1) && (0.0..=1.0).contains(&b) => Ok(Bm25 { k1, b }),
        _ => Err("it must be two numbers, k1 of 0 or more and b from 0 to 1, as in 0.9,0.4".into()),
    }
}
