//! `memlocal methods`: which there are, and what each does.

use std::process::ExitCode;

use anyhow::Result;
use memory::Method;

use crate::args::Methods;
use crate::output::{print_line, print_table};

pub fn run(command: &Methods) -> Result<ExitCode> {
    match command {
        Methods::List => print_table(&[], Method::ALL.map(|method| vec![method.to_string(), method.summary()]))?,
        Methods::Show { name } => print_line(name.documentation())?,
    }
    Ok(ExitCode::SUCCESS)
}
