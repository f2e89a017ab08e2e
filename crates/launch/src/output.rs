//! Printing to standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use comfy_table::{Table, presets};

/// Prints a text; a closed pipe is no error.
pub fn print(text: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("the output cannot be written"),
    }
}

/// Prints a line.
pub fn print_line(line: impl Display) -> Result<()> {
    print(format_args!("{line}\n"))
}

/// Prints rows under a header.
pub fn print_table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<()> {
    print_line(table(header, rows))
}

/// Rows under a header, without frame lines that scripts would have to strip.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.trim_fmt()
}

/// A number of things: `1 page`, `2 pages`.
pub fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
