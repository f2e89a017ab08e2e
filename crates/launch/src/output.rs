//! Printing to standard output and standard error.

use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};
use comfy_table::{Table, presets};

/// A name or a message in one line: its control characters, line ends too, are escaped as in JSON, so that they have no
/// effect on a terminal.
pub fn printable(text: impl Display) -> String {
    escaped(&text.to_string(), affects_terminal)
}

/// Control characters, and those that change the direction of the text after them, so that a name reads differently.
fn affects_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of several lines in the same way.
fn in_lines(text: &str) -> String {
    escaped(text, |c| affects_terminal(c) && c != '\n' && c != '\t')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_escaped(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c => drop(write!(shown, "\\u{:04x}", u32::from(c))),
        }
    }
    shown
}

/// Prints a text, on a terminal with its control characters escaped; a closed pipe is no error.
pub fn print(text: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let printed =
        if out.is_terminal() { write!(out, "{}", in_lines(&text.to_string())) } else { write!(out, "{text}") };
    match printed.and_then(|()| out.flush()) {
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

/// Writes a line to standard error, with passwords in URLs redacted and control characters escaped; a closed standard error is
/// ignored.
pub fn print_error_line(line: impl Display) {
    print_styled_error(in_lines(&line.to_string()));
}

/// The same for a text with the colours of a terminal.
pub fn print_styled_error(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", store::without_secrets(&text.to_string()));
}

/// Whether standard error shows colours: it is a terminal, and the user has not set NO_COLOR (<https://no-color.org>).
pub fn error_has_colours() -> bool {
    has_colours(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR"))
}

fn has_colours(is_terminal: bool, no_color: Option<OsString>) -> bool {
    is_terminal && no_color.is_none_or(|value| value.is_empty())
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
    let rows = rows.into_iter().map(|row| row.into_iter().map(printable).collect::<Vec<_>>());
    let mut table = Table::new();
    table.load_style(presets::NOTHING).add_rows(rows);
    // An empty header would be an empty line.
    if !header.is_empty() {
        table.set_header(header);
    }
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.trim_fmt()
}

/// A number of things: `1 page`, `2 pages`.
pub fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_have_no_effect_on_a_terminal() {
        let name = "a\u{1b}[31m\n\thint: b\u{9b}2J\r\u{7f}.txt";
        assert_eq!(printable(name), r"a\u001b[31m\n\thint: b\u009b2J\r\u007f.txt");
        assert_eq!(in_lines(name), "a\\u001b[31m\n\thint: b\\u009b2J\\r\\u007f.txt");
        assert_eq!(table(&["document"], [vec!["a\nb".to_owned()]]), "document\na\\nb");
        assert_eq!(table(&[], [vec!["a".to_owned(), "b".to_owned()]]), "a  b");
        assert_eq!(printable("a\u{202e}txt.exe\u{2066}"), r"a\u202etxt.exe\u2066");
        assert_eq!(printable("Zoë 日本 🦉"), "Zoë 日本 🦉");
    }

    #[test]
    fn colours_are_for_terminals_of_users_who_want_them() {
        assert!(has_colours(true, None) && has_colours(true, Some(OsString::new())));
        assert!(!has_colours(true, Some("1".into())) && !has_colours(false, None));
    }
}
