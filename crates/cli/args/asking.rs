//! The flags of `ask` and `ingest`.

#![allow(rustdoc::bare_urls, reason = "comments of flags are the help that the terminal shows")]

use std::path::PathBuf;
use std::str::FromStr;

use clap::ArgGroup;
use launch::flags::{EndpointFlags, ModelFlags, at_least_one, evidence_tokens, temperature};
use memory::{Layout, Method, Profile, methods};

use crate::method_options::{AskOptions, PrepareOptions};

#[derive(Debug, clap::Args)]
pub struct Ask {
    /// The question
    #[arg(default_value = "", hide_default_value = true)]
    pub question: String,
    /// An answer to choose from, once for each; only the call that writes the answer reads them
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
    /// Show how many tokens of every prompt were cached, and where the prompt diverged from the cache
    #[arg(long)]
    pub explain_cache: bool,
    /// Save the keys and values of the beginnings of prompts beside the corpus: the next question on it starts sooner, for
    /// a few hundred MB of disk space
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
    #[arg(long, value_name = "NAME", conflicts_with = "page_tokens")]
    pub corpus: Option<String>,
    /// Files and folders to ask instead; what is memorised of them is kept for the next time
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub docs: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("cutting").arg("page_tokens").requires("paths")))]
pub struct Ingest {
    /// Files and folders: documents, tables, mail, chats, source code; without any, what was interrupted is finished
    pub paths: Vec<PathBuf>,
    /// Read only the files of folders that match, such as '*.md' or 'notes/**'; may be given several times
    #[arg(long, value_name = "GLOB", requires = "paths")]
    pub include: Vec<String>,
    /// Leave out files and folders that match; may be given several times
    #[arg(long, value_name = "GLOB", requires = "paths")]
    pub exclude: Vec<String>,
    /// Keep reading what is added or changed, until Ctrl-C
    #[arg(long, requires = "paths")]
    pub watch: bool,
    /// Remove the documents of files that are gone from these paths, also those of a path that is gone itself (not with
    /// --watch)
    #[arg(long, requires = "paths")]
    pub delete: bool,
    /// Corpus to add them to; created if it does not exist
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
    /// Form of prompts: paper (in full) or small (for models below 2.5 billion parameters) [default: by each model's size]
    #[arg(long)]
    pub profile: Option<Profile>,
    /// Order of prompt parts: shared-first (fast) or paper (as printed)
    #[arg(long, default_value_t = Layout::SharedFirst)]
    pub layout: Layout,
    /// Tokens of a page; documents that are here already are cut anew [default: a sixteenth of the model's context,
    /// 2048 at most]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub page_tokens: Option<usize>,
    /// Temperature of sampling, 0 to 2; 0 is greedy
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
    /// Tokens of retrieved pages in one prompt, 64 or more [default: half of the model's context]
    #[arg(long, value_name = "N", value_parser = evidence_tokens)]
    pub evidence_tokens: Option<usize>,
}
