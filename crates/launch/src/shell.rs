//! Shell completions and man pages, generated from the flags themselves.

use std::fs;
use std::path::Path;

use anyhow::Result;
use clap::Command;
use clap_complete::Shell;

use crate::failure::refusal;
use crate::output::print;

/// Prints the completion script of a program for a shell.
pub fn print_completions(mut command: Command, shell: Shell) -> Result<()> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(String::from_utf8_lossy(&script))
}

/// Writes a man page for the program and one for each command, `memlocal-serve.1` and the like.
pub fn write_man_pages(command: Command, folder: &Path) -> Result<()> {
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(|error| {
        refusal(format!("cannot write to {}: {error}", folder.display()), "choose a folder that you may write to")
    })
}
