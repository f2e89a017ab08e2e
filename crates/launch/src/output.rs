//! Printing to standard output and standard error.

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

/// Writes a line to standard error, with passwords in URLs redacted. Unlike the standard library's macro of the same name it
/// does not panic if standard error is closed.
#[macro_export]
macro_rules! eprintln {
    ($($arg:tt)*) => { $crate::output::print_error_line(format_args!($($arg)*)) };
}

/// Writes a line to standard error, with passwords in URLs redacted; a closed standard error is ignored.
pub fn print_error_line(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", store::without_secrets(&line.to_string()));
}

/// Standard error for logs: whole lines, with passwords in URLs redacted; a closed standard error is ignored.
pub struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let shown = store::without_secrets(&String::from_utf8_lossy(line));
        let _ = std::io::stderr().lock().write_all(shown.as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let _ = std::io::stderr().lock().flush();
        Ok(())
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
