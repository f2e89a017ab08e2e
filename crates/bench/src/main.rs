//! The `memlocal-bench` command: data sets, scorers, reports, plots and load generators (`eval`) at the command line.

mod args;
mod engine_speed;
mod forms;
mod provenance;
mod qa;
mod results;
mod retrieval;
mod server_speed;

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use launch::config_file::Sections;
use launch::failure::refusal;
use launch::{config_file, failure, shell};

use args::{Args, Command};

#[global_allocator]
static MEMORY: kernels::memory::LargePages = kernels::memory::LargePages;

fn main() -> ExitCode {
    kernels::memory::limit_heaps();
    let mut args: Args = match config_file::parse(Args::command(), Sections::Ignored) {
        Ok(args) => args,
        Err(error) => return failure::report(&error),
    };
    args.global.fix_kv();
    launch::exit_on_interrupt();
    run(&args).unwrap_or_else(|error| failure::report(&with_hint(error)))
}

/// Gives an error of a run folder, of data or of another server the hint what to do about it.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    let hint = match error.downcast_ref::<eval::Error>() {
        Some(eval::Error::Read { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            "allow this user to read it"
        }
        Some(eval::Error::Read { .. }) => {
            "correct the path: --data takes a data set in its published format, other commands a folder made by qa"
        }
        Some(eval::Error::NotTheData { .. }) => "--data takes the data set in its published format",
        Some(eval::Error::Peer { .. }) => "check that this server runs and that its address is right: http://HOST:PORT",
        Some(eval::Error::Occupied { .. }) => {
            "name another folder: --out FOLDER; --resume resumes runs of qa and forms"
        }
        Some(eval::Error::OtherPlan { .. }) => "resume it with the same flags, or name another folder: --out FOLDER",
        _ => return error,
    };
    refusal(format!("{error:#}"), hint)
}

fn run(args: &Args) -> Result<ExitCode> {
    let global = &args.global;
    launch::set_up_cpu(global)?;
    let isa = kernels::cpu::active_isa();
    eval::name_kernels(match &launch::gpu_names(global)[..] {
        [] => format!("{isa}, {} numerics, KV cache in {}", isa.numerics(), global.kv()),
        gpus => format!("CUDA, {}", gpus.join(", ")),
    });
    match &args.command {
        Command::Retrieval(bench) => retrieval::run(bench, global)?,
        Command::Engine(bench) => engine_speed::run(bench, global)?,
        Command::Serve(bench) => server_speed::run(bench, global)?,
        Command::Forms(bench) => forms::run(bench, global)?,
        Command::Qa(bench) => qa::run(bench, global)?,
        Command::Rescore { run } => qa::rescore(run)?,
        Command::Compare { a, b } => qa::compare(a, b)?,
        Command::Plot { runs, out } => qa::plot(runs, out)?,
        Command::Publish { run, out } => eval::qa::publish(run, out)?,
        Command::Replay { run } => return qa::replay(run),
        Command::Completions { shell } => shell::print_completions(Args::command(), *shell)?,
        Command::Man { folder } => shell::write_man_pages(Args::command(), folder)?,
        Command::PdfText { path } => return Ok(sources::print_pdf_text(path)),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_data_or_of_a_server_has_a_hint_and_its_cause() {
        let shown = |error: eval::Error| {
            let error = with_hint(error.into());
            assert!(failure::hint_of(&error).is_some(), "{error}");
            error.to_string()
        };
        let read = |kind: ErrorKind| eval::Error::Read { path: "a".into(), source: kind.into() };
        assert_eq!(shown(read(ErrorKind::NotFound)), "cannot read a: entity not found");
        let denied = failure::hint_of(&with_hint(read(ErrorKind::PermissionDenied).into()));
        assert_eq!(denied.as_deref(), Some("allow this user to read it"));
        assert_eq!(shown(eval::Error::NotTheData { path: "a".into(), problem: "no rows".into() }), "a: no rows");
        assert_eq!(shown(eval::Error::Peer { url: "http://b".into(), problem: "refused".into() }), "http://b: refused");
    }

    #[test]
    fn an_error_of_a_run_folder_has_a_hint() {
        let path = || "runs/qa-locomo".into();
        for error in [eval::Error::Occupied { path: path() }, eval::Error::OtherPlan { path: path() }] {
            let (before, error) = (error.to_string(), with_hint(error.into()));
            assert_eq!(error.to_string(), before);
            assert!(failure::hint_of(&error).is_some_and(|hint| hint.contains("--out")), "{error}");
        }
        let other = with_hint(eval::Error::Panicked.into());
        assert_eq!(failure::hint_of(&other), None);
    }
}
