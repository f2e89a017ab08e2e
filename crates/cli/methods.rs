//! `memlocal methods`: lists and describes the methods.

use std::process::ExitCode;

use anyhow::Result;
use launch::output::{print_line, print_table};
use memory::methods;

use crate::args::Methods;

pub fn run(command: &Methods) -> Result<ExitCode> {
    match command {
        Methods::List => {
            print_table(&[], methods::ALL.iter().map(|method| vec![method.to_string(), method.about().summary()]))?;
        }
        Methods::Show { name: method } => {
            print_line(method.about().documentation())?;
            if let Some(paper) = method.about().paper {
                print_line(format_args!("\n# Paper\n{paper}"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
