//! The `memlocal` command: parses the command line and calls the library crates.

mod answer;
mod args;
mod ask;
mod bench;
mod bundle;
mod compare;
mod corpus;
mod doctor;
mod documents;
mod explain;
mod gone;
mod ingest;
mod method_options;
mod methods;
mod model_names;
mod models;
mod serve;
mod settings;
mod shelf;
mod train;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use launch::config_file::Sections;
use launch::failure::with_hint_of_cache;
use launch::{choose, config_file, corpus_adapter, failure, shell};

use args::{Args, Ask, Command, Ingest, Mcp, Serve, Train};

#[global_allocator]
static MEMORY: kernels::memory::LargePages = kernels::memory::LargePages;

fn main() -> ExitCode {
    kernels::memory::limit_heaps();
    if let Some(arguments) = bench::arguments() {
        return bench::run(&arguments).unwrap_or_else(|error| failure::report(&error));
    }
    let command = args::command();
    let args: Args = match config_file::parse(command.clone(), Sections::OfCommands) {
        Ok(args) => args,
        Err(error) => {
            // `doctor` reports a wrong config file with all else.
            let args: Option<Args> = config_file::parse_without_file(command);
            return match &args {
                Some(Args { command: Command::Doctor(doctor), global }) => doctor::run(doctor, global, Err(error)),
                _ => Err(error),
            }
            .unwrap_or_else(|error| failure::report(&error));
        }
    };
    // Servers finish running requests first and handle the signal themselves.
    if !matches!(args.command, Command::Serve(_) | Command::Mcp(_)) {
        launch::exit_on_interrupt();
    }
    run(args).unwrap_or_else(|error| failure::report(&error))
}

/// Whether the command line itself names a model.
fn types_model() -> bool {
    config_file::types(&args::command(), "model")
}

fn run(mut args: Args) -> Result<ExitCode> {
    let global = &args.global;
    if !matches!(args.command, Command::Doctor(_)) {
        launch::set_up_cpu(global)?;
    }
    match &mut args.command {
        Command::Ask(Ask { models, engine, .. })
        | Command::Ingest(Ingest { models, engine, .. })
        | Command::Serve(Serve { models, engine, .. }) => choose::first_run(models, engine, types_model(), global)?,
        Command::Train(Train { model, .. }) => train::leave_trained(model, types_model())?,
        _ => {}
    }
    match &mut args.command {
        Command::Ask(Ask { models, documents, .. }) => {
            let asked = documents.corpus.as_deref();
            corpus_adapter::resolve(&models.model, &mut models.adapters, asked, global)?;
        }
        Command::Ingest(Ingest { models, corpus, .. }) => {
            corpus_adapter::resolve(&models.model, &mut models.adapters, Some(corpus), global)?;
        }
        Command::Train(Train { model, adapter, corpus, .. }) => {
            corpus_adapter::resolve(model, adapter.as_mut_slice(), Some(corpus), global)?;
        }
        Command::Serve(Serve { models, .. }) | Command::Mcp(Mcp { models, .. }) => {
            corpus_adapter::resolve(&models.model, &mut models.adapters, None, global)?;
        }
        _ => {}
    }
    match &args.command {
        Command::Ask(ask) => return ask::run(ask, global).map_err(|error| with_hint_of_cache(error, global.kv_tokens)),
        Command::Ingest(ingest) => {
            return ingest::run(ingest, global).map_err(|error| with_hint_of_cache(error, global.kv_tokens));
        }
        Command::Train(train) => return train::run(train, global),
        Command::Corpus { command } => return corpus::run(command, global),
        Command::Methods { command } => return methods::run(command),
        Command::Models { command } => return models::run(command, global),
        Command::Serve(serve) => return serve::run(serve, global),
        Command::Doctor(doctor) => return doctor::run(doctor, global, config_file::find(&args::command())),
        Command::Mcp(mcp) => return serve::run_mcp(mcp, global),
        Command::Bundle(command) => return bundle::run(command, global),
        Command::Keys { command } => return serve::run_keys(command, global),
        Command::Completions { shell } => shell::print_completions(args::completed(), *shell)?,
        Command::Man { folder } => shell::write_man_pages(args::command(), folder)?,
        Command::Bench { arguments } => return bench::run(arguments),
        Command::PdfText { path } => return Ok(sources::print_pdf_text(path)),
    }
    Ok(ExitCode::SUCCESS)
}
