//! The command line of `memlocal`.

#![allow(rustdoc::bare_urls, reason = "comments of flags are the help that the terminal shows")]

mod asking;
mod managing;
mod serving;
mod training;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use launch::flags::{GlobalFlags, STYLES};

pub use asking::{Ask, Ingest, MethodChoice};
pub use managing::{Bundle, BundleCommand, Corpus, Doctor, Keys, Methods, Models};
pub use serving::{LoadChoice, Mcp, Serve};
pub use training::Train;

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
    /// Questions are made whose answers are spans of the documents, and dropped if the model, shown the text alone, does not answer
    /// with the span. A LoRA adapter is trained on the rest, and kept if it answers questions that were held out better. Do not
    /// expect much: where we measured it, it did not help (docs/training.md). Time and memory are printed before it begins. The same
    /// command continues a run that was stopped. The adapter is used with --adapter corpus. It is deleted with the corpus, and
    /// when a document that it has learned from is replaced or removed.
    Train(Train),
    /// List, show, check, back up and remove corpora
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
    /// Make one executable file of this program, models and corpora, which runs without an installation
    Bundle(Bundle),
    /// Serve a web page, the APIs of OpenAI, Anthropic, Ollama and memlocal, and MCP
    Serve(Serve),
    /// Speak MCP over standard input and output
    Mcp(Mcp),
    /// Check processor, device, memory, data folder, models and network, and report problems
    Doctor(Doctor),
    /// Make, list and remove API keys; a server requires one as soon as there are any
    #[command(arg_required_else_help = true)]
    Keys {
        #[command(subcommand)]
        command: Keys,
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

/// Commands that compute nothing.
const IDLE: [&str; 5] = ["keys", "corpus", "methods", "completions", "man"];

/// The global flags of processors and caches.
fn computing_flags(command: &clap::Command) -> Vec<clap::Arg> {
    const COMPUTING: [&str; 7] = ["gpu", "cpu", "backend", "threads", "kv_tokens", "kv", "draft_tokens"];
    command.get_arguments().filter(|flag| COMPUTING.contains(&flag.get_id().as_str())).cloned().collect()
}

/// The command line. Commands that compute nothing do not list the flags of processors and caches.
pub fn command() -> clap::Command {
    let mut command = Args::command();
    let flags = computing_flags(&command);
    // A subcommand that defines a global flag itself does not inherit it.
    for idle in IDLE {
        command = command.mut_subcommand(idle, |idle| idle.args(flags.iter().map(|flag| flag.clone().hide(true))));
    }
    taking_negative_numbers(command)
}

/// The command whose flags take words such as `-1` as their values: their parsers say what is wrong with them.
fn taking_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let has_value = !argument.is_positional() && argument.get_action().takes_values();
        if has_value { argument.allow_negative_numbers(true) } else { argument }
    });
    command.mut_subcommands(taking_negative_numbers)
}

/// The same for the completions of shells, which offer hidden flags too: commands that compute nothing have no such flags.
pub fn completed() -> clap::Command {
    let mut command = Args::command();
    let flags = computing_flags(&command);
    for flag in &flags {
        command = command.mut_arg(flag.get_id(), |flag| flag.global(false));
    }
    command.mut_subcommands(|of| if IDLE.contains(&of.get_name()) { of } else { of.args(&flags) })
}
