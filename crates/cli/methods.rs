//! `memlocal methods`: which there are, and what each does.

use std::process::ExitCode;

use anyhow::Result;
use launch::output::{print_line, print_table};
use memory::Method;

use crate::args::Methods;

pub fn run(command: &Methods) -> Result<ExitCode> {
    match command {
        Methods::List => print_table(&[], Method::ALL.map(|method| vec![method.to_string(), method.summary()]))?,
        Methods::Show { name } => print_line(name.documentation())?,
    }
    Ok(ExitCode::SUCCESS)
}
