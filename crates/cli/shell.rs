//! `memlocal completions` and `memlocal man`: what a system's shells and manual need, made from the flags themselves.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::output::print;

pub fn run_completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "memlocal", &mut script);
    print(String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// A page for the program and one for each command, `memlocal-serve.1` and the like.
pub fn run_man(folder: &Path) -> Result<ExitCode> {
    let cannot = || format!("cannot write to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(Args::command(), folder).with_context(cannot)?;
    Ok(ExitCode::SUCCESS)
}
