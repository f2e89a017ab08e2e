//! The command line of `memlocal-bench`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use eval::Suite;
use eval::qa::QaSuite;
use eval::qa::ruler::Task;
use eval::retrieval::Tool;
use eval::score::Scorer;
use eval::speed::{Decoding, Preset, SpeedSuite};
use launch::flags::{
    AdapterFlag, DEFAULT_EMBEDDER, DEFAULT_MODEL, EmbedderFormat, EndpointFlags, GlobalFlags, ModelFlags, STYLES,
    at_least_one, evidence_tokens, extension, temperature,
};
use memory::comorag::Knowledge;
use memory::gam::OutputForm;
use memory::memcot::MemcotStore;
use memory::{Layout, Method, Profile, SearchTool, methods};
use models::Quantisation;
use store::Bm25;

const AFTER_HELP: &str = "\
`memlocal bench ...` starts this program with the same arguments.

Exit codes: 0 done, 1 failed or a check did not pass, 2 wrong usage, 130 interrupted.";

/// Measure answers, retrieval and speed of memlocal, with raw results and their provenance.
#[derive(Debug, Parser)]
#[command(name = "memlocal-bench", version, styles = STYLES, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub global: GlobalFlags,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how well search tools find the passages that answer questions
    Retrieval(Retrieval),
    /// Measure the speed of the engine on the workloads of the methods, beside another server if one is named
    Engine(Speed),
    /// Measure the speed of a server with concurrent clients, beside another server; or test it under load
    Serve(ServeBench),
    /// Check that every reply of every method's agents has the output format that was requested
    Forms(Forms),
    /// Ask whole data sets by method and model, and score the answers
    Qa(Box<Qa>),
    /// Score the answers of a run of `qa` again and rewrite its report; no model is needed
    Rescore {
        /// The folder of the run
        run: PathBuf,
    },
    /// Test whether two runs of `qa` differ: their scores, the difference with its 95 % interval, and p, by a paired
    /// bootstrap over the questions that both were asked
    Compare {
        /// The folder of a run
        a: PathBuf,
        /// The folder of another; the same one to compare its methods and models with each other
        b: PathBuf,
    },
    /// Plot score and evidence recall of several runs of `qa` against the rounds, k or window that they differ in
    Plot {
        /// The folders of the runs
        #[arg(required = true, num_args = 2..)]
        runs: Vec<PathBuf>,
        /// Folder for the plots
        #[arg(long, value_name = "FOLDER", default_value = "plots")]
        out: PathBuf,
    },
    /// Copy a run of `qa` without the texts of its data, which may not be yours to publish: no transcript, and results
    /// without questions, gold answers and quotes
    Publish {
        /// The folder of the run
        run: PathBuf,
        /// A new folder
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Answer all questions of a run of `qa` again from its transcript, without a model, and check that the answers are the
    /// same
    Replay {
        /// The folder of the run
        run: PathBuf,
    },
    /// Print the script with which a shell completes commands and flags
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write man pages to a folder
    Man {
        /// The folder; made if it does not exist
        folder: PathBuf,
    },
    /// Print the text of a PDF; a child process does this, because PDF readers can hang
    #[command(hide = true)]
    PdfText { path: PathBuf },
}

#[derive(Debug, clap::Args)]
pub struct Forms {
    /// Files and folders on which every method works
    #[arg(long, value_name = "PATH", num_args = 1.., required = true)]
    pub docs: Vec<PathBuf>,
    /// Replies to check, at least
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = at_least_one)]
    pub calls: usize,
    /// Fail if more than this share of the replies of any step was cut off: by its token limit, by the repetition guard, or
    /// by closing its format early [default: only report it]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub max_cut: Option<f64>,
    #[command(flatten)]
    pub models: ModelFlags,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Resume the run in FOLDER/forms
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Keep every call, manifest, raw results and report in FOLDER/forms
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Qa {
    /// Data set: locomo, longmemeval, hotpotqa, ruler, narrativeqa, infinitebench, detectiveqa, longbench-v2,
    /// longreason-200, musique, 2wiki, answers (several sets and samples/, some questions without an answer) or follow-ups
    /// (questions of xquad that refer to the one before them) [default: the preset's first]
    #[arg(long, value_name = "NAME", required_unless_present = "preset")]
    pub suite: Option<QaSuite>,
    /// Its file or folder, in its published format; for ruler a folder with ruler/*list.txt and novels/*.txt, for answers a
    /// folder with xquad, hotpotqa, narrativeqa and locomo, for follow-ups the folder xquad
    #[arg(long, value_name = "PATH")]
    pub data: PathBuf,
    /// A paper's configuration, which flags override: gam/table1-qwen2.5-14b, memcot/table1-qwen2.5-14b,
    /// memcot/table2-qwen2.5-7b, comorag/table1 or mindgraph/table2
    #[arg(long, value_name = "PAPER/TABLE")]
    pub preset: Option<String>,
    /// Methods, as of `memlocal ask` [default: the preset's, else auto]
    #[arg(long, value_name = "METHOD,...", value_delimiter = ',', value_parser = methods::find)]
    pub method: Vec<&'static dyn Method>,
    /// Language models, one after the other [default: the preset's, else smollm2-135m-instruct]
    #[arg(long, value_name = "NAME|PATH,...", value_delimiter = ',')]
    pub model: Vec<String>,
    #[command(flatten)]
    pub engine: EndpointFlags,
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
    /// LoRA adapter, once for each: MODEL+NAME as a model runs with it (`base+NAME`: the model of --model); none turns a
    /// model's own adapter off
    #[arg(long = "adapter", value_name = "NAME=PATH|none")]
    pub adapters: Vec<AdapterFlag>,
    /// Embedding model [default: the preset's, else all-minilm-l6-v2]
    #[arg(long, value_name = "NAME|PATH")]
    pub embedder: Option<String>,
    /// Make dense weights smaller while they are loaded: q8_0 or q4_k
    #[arg(long, value_name = "FORMAT")]
    pub quantise: Option<Quantisation>,
    /// Reach FACTOR times the context that the models were made for (YaRN) [default: the preset's for the suite, else 1]
    #[arg(long, value_name = "FACTOR", value_parser = extension)]
    pub yarn: Option<f32>,
    /// Scorers: f1:locomo, f1:gam, f1:squad, f1:hotpotqa (as f1:squad, but yes and no are right or wrong), em:squad, bleu1,
    /// ruler:gam, ruler:nvidia, mc:letter, and with a judge mindgraph:cascade, mindgraph:judge, longmemeval:judge,
    /// locomo:judge [default: those that the papers use on the data set]
    #[arg(long, value_name = "SCORER,...", value_delimiter = ',')]
    pub scorers: Vec<Scorer>,
    /// Write every call with its tokens, their log-probabilities and its reward to this file, one JSON object a line, for
    /// trainers (docs/training.md)
    #[arg(long, value_name = "FILE", conflicts_with = "engine")]
    pub rollouts: Option<PathBuf>,
    /// The scorer of answers that rewards calls, one of the run's [default: the first of them]
    #[arg(long, value_name = "SCORER", requires = "rollouts")]
    pub reward: Option<Scorer>,
    /// Prefixes of the categories to ask, or `all` [default: for locomo 1,2,3,4, as in the papers; else all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Prefixes of the ids of the cases to ask: conversations, stories or samples [default: all]
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub cases: Vec<String>,
    /// Ask only the first N questions, with --sample of those drawn; for answers and follow-ups the first N of each part
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<usize>,
    /// Ask N questions drawn by the seed [default: the preset's for the suite, else all]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub sample: Option<usize>,
    /// Seed of sampling, of --sample and of ruler's generator [default: the preset's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Order of prompt parts: shared-first or paper [default: the preset's, else shared-first]
    #[arg(long)]
    pub layout: Option<Layout>,
    /// Form of prompts: paper (in full) or small (for models below 2.5 billion parameters) [default: the preset's,
    /// else by each model's size]
    #[arg(long)]
    pub profile: Option<Profile>,
    /// Sampling temperature [default: the preset's, else 0.3]
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub temperature: Option<f32>,
    /// Tokens of a page [default: the preset's for each method, else a sixteenth of the model's context, 2048 at most]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub page_tokens: Option<usize>,
    /// Tokens of retrieved pages in one prompt, 64 or more [default: the preset's, else half of the model's context]
    #[arg(long, value_name = "N", value_parser = evidence_tokens)]
    pub evidence_tokens: Option<usize>,
    /// Maximum hits of each search [default: the preset's for each method, else as in its paper: 5 pages, for memcot 10 turns]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub k: Option<usize>,
    /// How rag searches pages: fused, dense or bm25, as of `memlocal ask` [default: the preset's, else fused]
    #[arg(long, value_name = "TOOL")]
    pub search: Option<SearchTool>,
    /// Where memcot searches: hybrid or lightrag, as of `memlocal ask` [default: the preset's, else hybrid]
    #[arg(long, value_name = "STORE")]
    pub memcot_store: Option<MemcotStore>,
    /// Layers of comorag: veridical, semantic, episodic [default: the preset's, else all]
    #[arg(long, value_name = "LAYER,...", value_delimiter = ',')]
    pub layers: Vec<Knowledge>,
    /// Turns before and after each hit that memcot reads too [default: the preset's, else 4, for longmemeval 15]
    #[arg(long, value_name = "N")]
    pub window: Option<usize>,
    /// Maximum rounds of research, search or probing [default: the preset's for the suite, else as in each method's paper:
    /// gam 3, memcot 8, comorag 5, mindgraph 40]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_iterations: Option<usize>,
    /// Result of research that the responder gets: integration, pages or extraction
    #[arg(long, default_value_t = OutputForm::Integration, value_name = "FORM")]
    pub output: OutputForm,
    /// Concurrent questions, about one text or several, and concurrent preparations, so that the engine can batch. With 1
    /// each method ends before the next begins, and time and memory are reported for each alone
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = at_least_one)]
    pub width: usize,
    /// For ruler: tokens of a sample, question and answer included [default: the preset's, else 8192]
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    pub length: Option<usize>,
    /// For ruler: its tasks by name [default: all thirteen]
    #[arg(long, value_name = "TASK,...", value_delimiter = ',', value_parser = ruler_task)]
    pub tasks: Vec<String>,
    /// For ruler: samples of each task [default: 10]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub samples: Option<usize>,
    /// Resume the run in the folder
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
    /// Workloads: prefill, decode, json, embed, siblings, gam-trace, itl, load, snapshot, ask [default: all that need no further flag]
    #[arg(long, value_name = "SUITE,...", value_delimiter = ',')]
    pub suite: Vec<SpeedSuite>,
    /// Sizes of prompts and batches for a class of machines: laptop (models up to 3B), workstation (up to 14B) or server (up
    /// to 32B)
    #[arg(long, default_value_t = Preset::Workstation, value_name = "CLASS")]
    pub preset: Preset,
    /// How the answers of decode are sampled: agents (temperature 0.3), chat (temperature 0.8, top_p 0.95), penalties
    /// (as chat, with penalties), greedy. The other workloads are sampled as agents do
    #[arg(long, value_name = "WAY,...", value_delimiter = ',', default_values_t = Decoding::DEFAULT)]
    pub decoding: Vec<Decoding>,
    #[command(flatten)]
    pub models: ModelFlags,
    /// LoCoMo's file, for gam-trace
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Concurrent questions of gam-trace
    #[arg(long, default_value_t = 20, value_name = "N", requires = "data", value_parser = at_least_one)]
    pub questions: usize,
    /// Documents, for ask
    #[arg(long, value_name = "PATH")]
    pub docs: Option<PathBuf>,
    /// An OpenAI-compatible server with the same model on the same cores, measured on the same work in turns
    #[arg(long, value_name = "URL")]
    pub against: Option<String>,
    /// An OpenAI-compatible server with the same embedding model on the same cores, for embed
    #[arg(long, value_name = "URL")]
    pub embed_against: Option<String>,
    /// Process id of the server of --against or --embed-against, to report its memory too
    #[arg(long, value_name = "PID")]
    pub against_process: Option<u32>,
    /// Repetitions of each measurement; the median is reported
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
    /// A server with the same model on the same cores, measured with the same requests in turns: http://HOST:PORT
    #[arg(long, value_name = "URL", conflicts_with = "load")]
    pub against: Option<String>,
    /// A running memlocal server [default: one is started for the measurement]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Concurrent clients [default: 1,8,32; with --load one number, 64]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = at_least_one)]
    pub clients: Vec<usize>,
    /// How answers are sampled: agents (temperature 0.3), chat (temperature 0.8, top_p 0.95), penalties (as chat,
    /// with penalties), greedy; --load and --soak sample in one way
    #[arg(long, value_name = "WAY,...", value_delimiter = ',', default_values_t = Decoding::DEFAULT,
        conflicts_with_all = ["load", "soak"])]
    pub decoding: Vec<Decoding>,
    /// Seconds for which clients send requests [default: 20; with --load 120, with --soak 1800]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Repetitions of each measurement; the median is reported. --load and --soak run once
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = at_least_one,
        conflicts_with_all = ["load", "soak"])]
    pub repetitions: usize,
    /// Load test with many concurrent streams: no error, no lost token, no growing memory
    #[arg(long)]
    pub load: bool,
    /// Mixed work (ingest, ask, embeddings, abandoned chats) from twice as many clients as the server admits: no failed
    /// request, flat memory
    #[arg(long, conflicts_with_all = ["load", "against", "clients", "url"])]
    pub soak: bool,
    /// Language model of the server that is started
    #[arg(long, default_value = DEFAULT_MODEL, value_name = "NAME|PATH", conflicts_with = "url")]
    pub model: String,
    /// Its embedding model
    #[arg(long, default_value = DEFAULT_EMBEDDER, value_name = "NAME|PATH", conflicts_with = "url")]
    pub embedder: String,
    /// Print JSON instead of a table: one object with --load or --soak, else an object a line
    #[arg(long)]
    pub json: bool,
    /// Keep manifest, raw results and report in FOLDER/serve-MODEL, FOLDER/load-MODEL or FOLDER/soak-MODEL
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Retrieval {
    /// Data set: scifact, hotpotqa, musique, 2wiki, locomo or xquad
    #[arg(long, value_name = "NAME")]
    pub suite: Suite,
    /// Its file or folder, in its published format
    #[arg(long, value_name = "PATH")]
    pub data: PathBuf,
    /// Tools to compare: bm25, bm25-fields (titles and texts apart), bm25-named (titles as names of documents, as in
    /// corpora), dense, sparse and colbert (of embedders that have such heads), fused (bm25 and dense), fused-sparse (dense and sparse), fused-all (bm25, dense, sparse and colbert)
    /// [default: those with published numbers for the data set, and bm25, dense and fused]
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',')]
    pub tools: Vec<Tool>,
    /// Embedding model of all tools but those of BM25
    #[arg(long, default_value = DEFAULT_EMBEDDER, value_name = "NAME|PATH")]
    pub embedder: String,
    /// Make dense weights of the embedding model smaller and faster, or not: q8_0 or stored; its vectors differ slightly
    /// [default: q8_0 for bge-m3, stored for other names and for bge-m3:f32]
    #[arg(long, value_name = "FORMAT")]
    pub quantise_embedder: Option<EmbedderFormat>,
    /// BM25's parameters: term frequency saturation k1 and length normalisation b
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

fn ruler_task(name: &str) -> Result<String, String> {
    let unknown = || format!("it is not one of {}", Task::ALL.map(|task| task.name).join(", "));
    Task::named(name).map(|task| task.name.to_owned()).ok_or_else(unknown)
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.0..=100.0).contains(&number) { Ok(number) } else { Err("it must be 0 to 100".into()) }
}

fn bm25(text: &str) -> Result<Bm25, String> {
    let numbers = text.split_once(',').and_then(|(k1, b)| Some((k1.parse().ok()?, b.parse().ok()?)));
    match numbers {
        Some((k1, b)) if (0.0..1e6).contains(&k1) && (0.0..=1.0).contains(&b) => Ok(Bm25 { k1, b }),
        _ => Err("it must be two numbers, k1 of 0 or more and b from 0 to 1, as in 0.9,0.4".into()),
    }
}
